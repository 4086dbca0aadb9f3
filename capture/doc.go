// Package capture turns answers into stored turns. It holds turns with an unfinished end
// (tool loops, conversations stored by the provider, lanes of a WebSocket) and records the
// finished ones in the memory's file, with every backend. With Graphiti, each turn waits in the
// ledger (outbox.go) until Graphiti lists a copy; then the facts that Graphiti made of
// it are read (pull.go).
//
// One bounded recorder (Pipeline, recorder.go) owns a turn from its arrival
// until it is on disk:
//
//   - A turn is written at once, with a single fsync. A turn recorded a moment ago is skipped
//     (recent.go), however often a client sends it; the record decides about all others.
//   - A turn that cannot be written at once waits in RAM, within bounds (waiting.go): a note,
//     a turn that the disk rejected, or a history. One goroutine writes the others before each
//     history.
//   - Waiting notes and turns are written before a new turn, to preserve the order within a
//     conversation. A new turn does not wait for histories.
//   - A turn that exceeds the bounds is rejected and counted. The next request of a
//     conversation offers a history again if it was not recorded. Turns and notes still
//     waiting at the end of the process are lost, and Shutdown returns their number.
//
// It never fails a request.
package capture
