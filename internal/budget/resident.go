package budget

import "runtime/debug"

// GiveBack gives the machine back what the start needed and nobody needs now: free
// memory, and the pages of the program that only the start has read. They come
// back when they are read again.
func GiveBack() {
	debug.FreeOSMemory()
	dropProgram()
}
