package embedded

import (
	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

// Repair says how a damaged file is read into a new one: what groups say of their
// messages fits those that are left. What is of a group that is lost is lost.
var Repair = sqlite.Salvage{
	Skip: []string{"vectors", "unread"},
	After: append([]string{
		"DELETE FROM messages WHERE grp NOT IN (SELECT id FROM groups) OR id >> 32 <> grp",
		"UPDATE groups SET size = (SELECT count(*) FROM messages WHERE grp = groups.id), talk = '', said = 0",
		`UPDATE groups SET said = last.said, talk = iif(json_valid(last.source), coalesce(last.source ->> '$.session', ''), '')
			FROM (SELECT grp, max(id), said, source FROM messages GROUP BY grp) AS last WHERE grp = groups.id`,
	}, ledger.Repair.After...),
}
