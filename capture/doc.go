// Package capture turns answers into stored turns. It holds turns with an unfinished end, and records
// finished ones in the memory's file. With Graphiti, each turn then waits in the ledger until Graphiti
// lists a copy.
//
// A turn is on disk when its answer has ended. One that cannot be written waits in RAM, within
// bounds; beyond them it is rejected and counted. Turns and notes that still wait at the end of the
// process are lost, and Shutdown returns their number. Capture never fails a request.
package capture
