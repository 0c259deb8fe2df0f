/*
 * compactions.h
 *	  Whose journals are to be compacted: what the processes of a server tell its launcher.
 *
 * Who appends a page to a chain that has become long wishes for a compaction, and does so again with each further page.
 * So nothing is lost with a wish that finds no room, or with the server: all of it is in shared memory and begins empty.
 */
#ifndef SMART_AM_COMPACTIONS_H
#define SMART_AM_COMPACTIONS_H

/* Wishes for the compaction of an index's journal; one that is known keeps its time. */
extern void smart_compaction_wish(Oid database, Oid index);

/*
 * In the launcher: a database with a wish that is due, whose wishes are now for a worker; InvalidOid: none.  *waiting:
 * are there any wishes?
 */
extern Oid smart_compaction_call(bool *waiting);

/* In the worker: the next index of its database, InvalidOid: none.  smart_compaction_end() has to follow. */
extern Oid smart_compaction_begin(Oid database);

/* again_ms: the compaction failed or gave way, and is to be tried again after so many milliseconds; below 0: it is not. */
extern void smart_compaction_end(Oid database, Oid index, int again_ms);

#endif /* SMART_AM_COMPACTIONS_H */
