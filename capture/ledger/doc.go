// Package ledger owns the durable record of turns: a SQLite table with one row per turn and
// group, and tables of owners, sessions, counts and generations. The state of a row is the
// state of the turn in the group. One conditional write decides about every turn, wherever
// it comes from. All writes are committed when the method returns.
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
//	dead ──Drop──► dropped
//
// (1) Not if the group has a row with the same digest: clients shorten histories and repeat
// examples, so the conversation does not identify a turn. Nor if the turn or its group was
// forgotten after the turn.
//
// (2) The record of the interrupted answer then applies to the turn's rest.
//
// (3) But pending for a standalone text (Standalone) repeated after the forget.
//
// (4) If the row is open and its digest differs, the group lacks the end: the same decision
// applies to the turn's rest, which has an ID and a row of its own.
//
// (5) On the row of the turn's rest, which ends a history there. A repeated answer replaces
// it.
//
// One transaction decides whether a turn is new, writes its messages to the memory in the same
// file, and its row. A forget is one transaction, too. A pending, sent or dead row is a copy for
// Graphiti; without Graphiti, read delivered for pending in this table.
//
// The rows have no text. Settled rows (not pending, sent or dead) stay for SeenFor, so that the
// ledger recognizes turns that clients send again.
package ledger
