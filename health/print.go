package health

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/terminal"
)

// Print writes for a person how the memory and the queue are.
func (s *Status) Print(w io.Writer) {
	m := s.Memory
	fmt.Fprintf(w, "memory    %s, %s", m.Backend, m.State)
	if m.Where != "" {
		fmt.Fprintf(w, ", %s", m.Where)
	}
	fmt.Fprintf(w, "\n          recall %s, ingestion %s\n", onOff(m.Recall), onOff(m.Ingest))
	if m.ConsentSince != nil {
		fmt.Fprintf(w, "          consent for %s, since %s\n", m.ConsentFor, m.ConsentSince.Local().Format(time.DateTime))
	}
	if m.Emptied > 0 {
		fmt.Fprintf(w, "          %d messages of conversations lost their block to memory forget; those conversations get none any more\n", m.Emptied)
	}
	if n := len(s.Blocked); n > 0 {
		fmt.Fprintf(w, "          %s blocked, because memory forget has not ended: nothing of them is recalled, and new turns for them wait: %s\n",
			terminal.Count(n, "group"), strings.Join(s.Blocked, ", "))
		fmt.Fprintln(w, "          it goes on by itself; to see what keeps it from its end, run the same memory forget again")
	}
	if m.Why != "" {
		fmt.Fprintf(w, "          %s\n", m.Why)
	}
	if m.Since != nil {
		fmt.Fprintf(w, "          since %s\n", m.Since.Local().Format(time.DateTime))
	}
	if m.Remedy != "" {
		fmt.Fprintf(w, "          to do: %s\n", m.Remedy)
	}
	PrintQueue(w, &s.Queue)
	if len(s.Waiting) > 0 {
		fmt.Fprintf(w, "settings  changed in the file, and taken over by a restart: %s\n", strings.Join(s.Waiting, ", "))
	}
}

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}

// PrintQueue writes for a person how the queue is.
func PrintQueue(w io.Writer, q *capture.QueueStatus) {
	fmt.Fprintf(w, "turns     %d waiting, %d delivered (%d seen in the memory), %d dropped, %d refused\n",
		q.Pending, q.Delivered, q.Verified, q.Dropped, q.Dead)
	if q.UnderWay > 0 {
		fmt.Fprintf(w, "          %d of those waiting were accepted and are not there yet\n", q.UnderWay)
	}
	if q.Lost > 0 {
		fmt.Fprintf(w, "          %d were accepted, lost by the memory, and sent again\n", q.Lost)
	}
	if q.LeftOut > 0 {
		fmt.Fprintf(w, "          %d of histories were left out for now, because too many waited\n", q.LeftOut)
	}
	if q.GivenUp > 0 {
		fmt.Fprintf(w, "          %d answers were too many at once, or too large, to be read; their turns are not kept\n", q.GivenUp)
	}
	if q.Unkept != nil || q.NotKept > 0 {
		fmt.Fprintf(w, "          %d were lost because data_dir cannot be used, %d wait for it in memory\n", q.NotKept, q.InMemory)
	}
	if q.Oldest != nil {
		fmt.Fprintf(w, "          the oldest has waited for %s\n", time.Since(*q.Oldest).Round(time.Second))
	}
	if q.Failing != nil {
		fmt.Fprintf(w, "          delivery has failed for %s: %s\n", time.Since(*q.Failing).Round(time.Second), q.LastError)
		if q.Remedy != "" {
			fmt.Fprintf(w, "          to do: %s\n", q.Remedy)
		}
	}
	if q.Stalled != nil {
		fmt.Fprintf(w, "          the memory has kept nothing for %s, though it accepts: nothing is sent until it does\n", time.Since(*q.Stalled).Round(time.Second))
	}
	if q.Unlisted != nil {
		fmt.Fprintf(w, "          not verified by a listing for %s (%s): %s\n          to do: %s\n",
			time.Since(*q.Unlisted).Round(time.Second), q.Diagnosis, q.Diagnosis.Says(), q.Diagnosis.Remedy())
	}
	switch {
	case q.SharedDown != nil:
		fmt.Fprintf(w, "replicas  redis cannot be used for %s: %s\n          %s delivers meanwhile; %d turns wait in this replica's data_dir\n",
			time.Since(*q.SharedDown).Round(time.Second), q.SharedError, cmp.Or(q.Deliverer, "nobody"), q.Here)
	case q.Replica != "":
		fmt.Fprintf(w, "replicas  this is %s, %s delivers\n", q.Replica, cmp.Or(q.Deliverer, "none of them"))
	}
	if q.Dead > 0 {
		fmt.Fprintf(w, "          see those that were refused: graphiti-proxy queue list --state dead\n")
	}
}
