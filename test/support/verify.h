/*
 * verify.h
 *	  Does what a space keeps about itself agree?
 */
#ifndef TEST_VERIFY_H
#define TEST_VERIFY_H

#include "compute/allocate/space.h"

/*
 * Checks everything that the space keeps about itself, with no client at work:
 * lists, maps, counts.  SMART_CORRUPT and a sentence in message.
 */
extern smart_status smart_space_verify(struct smart_space *space, char *message, size_t message_size);

#endif /* TEST_VERIFY_H */
