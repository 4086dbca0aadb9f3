package budget

import "runtime/debug"

// GiveBack returns to the machine what only the start of the process needed: free RAM,
// and pages of the program, which are read again when they are needed.
func GiveBack() {
	debug.FreeOSMemory()
	dropProgram()
}
