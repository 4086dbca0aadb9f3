// Package capture owns what comes out of an answer: it makes turns of answers, holds
// those whose end is awaited (tool loops, conversations that the provider holds, lanes
// of a WebSocket), and records them: in the file of the embedded memory, or in an
// outbox, until a memory that is elsewhere is known to hold them.
//
// One bounded recorder (Pipeline, recorder.go) stands before either. It owns a turn
// from when it comes until it is on disk:
//
//   - A turn goes to the disk at once, with one wait for it. What was recorded a moment
//     ago is skipped (recent.go), however often a client sends it; the record decides
//     about the rest.
//   - What cannot be written at once waits in RAM, within bounds (waiting.go), in two
//     lanes. The first has turns that the disk did not take, and notes; the second has
//     histories. One goroutine writes the first lane before each batch of the second.
//   - A turn that comes has the first lane written before itself, so that the order
//     within a conversation stays. It does not wait for histories.
//   - What finds no room is refused and counted. A history that cannot be recorded is
//     offered again by the next request; turns and notes that wait end with the process,
//     which says how many.
//
// It must not know of the client's connection, of an answer's bytes, or of how a
// request was changed; it never fails a request. Of our packages it may import
// dialect, graphiti (types and ids), its subpackages except capture/response,
// cache/sqlite, cache/redis and graphiti/words.
package capture
