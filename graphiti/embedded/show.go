package embedded

import (
	"strconv"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// shownMax is the maximum number of characters to show of a message.
const shownMax = 450

// fact returns a hit as one line.
func (h *hit) fact(group string) graphiti.Fact {
	if h.told != nil {
		return h.distilled(group)
	}
	who, text := h.speaker, h.content
	if who == "" {
		who = string(h.role)
	}
	if c, ok := graphiti.ParseCurated(h.content); ok {
		who, text = strings.ReplaceAll(c.Kind, "_", " "), c.Text
	}
	if h.passage != "" {
		text = "…" + h.passage + "…"
	}
	said := who + ", " + h.said.Local().Format(time.DateOnly)
	return graphiti.Fact{
		UUID:      "embedded-" + strconv.FormatInt(h.place, 10),
		Text:      said + ": " + window(text) + h.exchange.context(),
		Group:     group,
		CreatedAt: h.said,
		ValidAt:   h.said,
		InvalidAt: endIn(h.content, h.said),
		Episode:   h.name,
		Dated:     true,
		Said:      said,
		Strength:  h.strength,
		Weighed:   true,
		Meant:     h.meant,
		OfUser:    h.ofSelf,
	}
}

// window returns a text in one line, cut if it is long.
func window(s string) string {
	return graphiti.Shorten(strings.ToValidUTF8(strings.Join(strings.Fields(s), " "), ""), "…", shownMax+1)
}
