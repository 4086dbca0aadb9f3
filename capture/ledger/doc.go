// Package ledger owns the durable record of turns: a SQLite table with one row for each
// turn and group, and tables of owners, sessions, counts and generations. A row's state
// says what became of the turn in the group. One conditional write decides what happens
// to a turn, wherever the turn comes from. It is committed when the method returns.
//
//	from \ event   live answer   tool loop      history        answer        forgotten
//	                             abandoned      of a client    interrupted
//	(no row)       pending       pending, open  pending (1)    cut           forgotten
//	cut            pending       pending (2)    -              cut           forgotten
//	forgotten      - (3)         -              -              -             -
//	any other      - (4)         - (4)          - (4)          cut (5)       forgotten
//
//	pending ──MarkSent──► sent ──MarkDelivered──► delivered
//	   ▲ ◄────Requeue───────┘ └────MarkDead────► dead ──Retry──► pending
//	pending, sent, dead ──Cut, DropBefore, DropDead──► dropped
//
// (1) Not where the group has a row with the same digest: clients shorten
// histories and repeat examples, and then it is not the conversation that tells
// turns apart. Nor when a turn or its group was forgotten after it was said.
// (2) And what was noted of the interrupted answer counts for the turn's rest.
// (3) But pending for a text that is a turn by itself (Standalone), when it is said again.
// (4) When the row is open and its digest another one, the group lacks the end:
// the same is decided about the turn's rest, which has an id and a row of its
// own.
// (5) The row of the turn's rest, at which a history then ends; an answer that
// is given again replaces it.
//
// Where the memory is in the ledger's own file, delivered stands for pending in this
// table: one transaction decides whether the turn is new and writes its messages and its
// row. To forget is one transaction, too. Where the memory is elsewhere, the rows are
// its outbox.
//
// Texts are kept while a turn waits or is dead. Rows that are settled (all
// others) are kept for a season, so that what clients send again is known.
//
// It must not know how a turn is written to a memory, nor who delivers it. Of
// our packages it may import graphiti (scopes and marks) and cache/sqlite.
package ledger
