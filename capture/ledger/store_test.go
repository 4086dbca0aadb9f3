package ledger

import (
	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
)

// repair restores the rows of counts, as the repair of a memory does.
var repair = sqlite.Salvage{After: []string{"INSERT OR IGNORE INTO totals VALUES ('delivered', 0), ('verified', 0), ('dropped', 0)"}}
