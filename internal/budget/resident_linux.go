package budget

import (
	"bufio"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// dropProgram removes the clean pages of the program from the process. On failure they
// stay.
func dropProgram() {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer maps.Close()
	var from, to uint64 // a read-only mapping of the program
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		line := lines.Text()
		switch fields := strings.Fields(line); {
		case len(fields) > 1 && strings.Contains(fields[0], "-"):
			from, to = 0, 0
			if strings.HasSuffix(line, " "+self) && !strings.Contains(fields[1], "w") {
				from, to = addresses(fields[0])
			}
		// Pages changed by the loader or a debugger have no copy on disk.
		case to > from && len(fields) > 1 && fields[0] == "Anonymous:" && fields[1] == "0":
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, uintptr(from), uintptr(to-from), unix.MADV_DONTNEED)
		}
	}
}

func addresses(span string) (from, to uint64) {
	a, b, _ := strings.Cut(span, "-")
	from, err := strconv.ParseUint(a, 16, 64)
	if err == nil {
		to, err = strconv.ParseUint(b, 16, 64)
	}
	if err != nil {
		return 0, 0
	}
	return from, to
}
