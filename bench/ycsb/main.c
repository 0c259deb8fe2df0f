/*
 * main.c
 *	  YCSB on a tree, without PostgreSQL (ycsb --help).
 */
#include <stdio.h>
#include <stdlib.h>

#include "report.h"

int
main(int argc, char **argv)
{
	struct ycsb_options options;
	struct ycsb_results results;
	bool done;

	ycsb_options_parse(&options, argc, argv);
	ycsb_print_heading(&options);
	done = ycsb_run(&options, ycsb_print_result, &results);
	if (done && options.csv != NULL)
		done = ycsb_write_csv(&options, &results);
	if (done && options.svg != NULL)
		done = ycsb_write_svg(&options, &results);
	ycsb_results_free(&results);
	return done ? 0 : 1;
}
