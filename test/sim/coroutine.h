/*
 * coroutine.h
 *	  Stacks that hand the processor to each other: the fabric's simulators share them.
 */
#ifndef SIM_COROUTINE_H
#define SIM_COROUTINE_H

#include "rdma/sim_coroutine.h"

#endif /* SIM_COROUTINE_H */
