package identity

import (
	"fmt"
	"slices"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Doubt is the suspicion that a registered person is not the owner of the memory that the
// entry resolves to, after a rename or a reassigned ID. The person has no memory until an
// operator confirms the entry.
type Doubt struct {
	ID     string // person's ID
	Memory string // key of the memory that the entry resolves to

	// Was is the memory that one of the person's keys or identities belonged to before. If
	// it is "", the doubt is that none of them belonged to Memory.
	Was   string
	Taken string // ID of the current owner of Was, or ""

	// Heir is the ID of a doubted person with a key or identity that belonged to Memory
	// before, or "".
	Heir string

	unread bool // the store is unreadable
}

// Judge compares registered people with known, the memory that each proof belonged to
// before. A person is doubted if a proof belonged to another memory, or if the person's
// memory had proofs before and the person has lost all of them. A person without any keys
// and identities, now and before, is not doubted. claims maps the new proofs of all people
// without doubts to their memories.
func Judge(list []Person, known map[[32]byte]string) (judged []Person, claims map[[32]byte]string) {
	judged, claims = slices.Clone(list), make(map[[32]byte]string)
	byMemory, heirs := make(map[string]string, len(list)), make(map[string]string)
	for i := range list {
		byMemory[list[i].Memory()] = list[i].ID
	}
	for i := range judged {
		one := &judged[i]
		d := Doubt{ID: one.ID, Memory: one.Memory()}
		proofs, theirs := one.Proofs(), false
		for _, p := range proofs {
			switch was := known[p]; {
			case was == d.Memory:
				theirs = theirs || p != memoryProof(d.Memory)
			case was != "" && (d.Was == "" || was < d.Was):
				d.Was, d.Taken = was, byMemory[was]
			}
		}
		_, seen := known[memoryProof(d.Memory)]
		if one.Doubt = nil; d.Was != "" || seen && !theirs {
			one.Doubt, heirs[d.Was] = &d, d.ID
			continue
		}
		for _, p := range proofs {
			if known[p] == "" {
				claims[p] = d.Memory
			}
		}
	}
	for i := range judged {
		if d := judged[i].Doubt; d != nil {
			d.Heir = heirs[d.Memory]
		}
	}
	return judged, claims
}

// DoubtAll doubts all people. It is used while the store is unreadable.
func DoubtAll(list []Person) []Person {
	list = slices.Clone(list)
	for i := range list {
		list[i].Doubt = &Doubt{ID: list[i].ID, Memory: list[i].Memory(), unread: true}
	}
	return list
}

// Proofs returns digests of the keys and identities that prove a person, and of the key of
// the person's memory. It returns nil for a person without keys and identities.
func (p *Person) Proofs() (list [][32]byte) {
	for _, k := range p.Keys {
		list = append(list, graphiti.Digest("proof of a person: key", fingerprintOf(k)))
	}
	for platform, id := range p.Identities {
		at := identityOf(platform, id)
		list = append(list, graphiti.Digest("proof of a person: identity", at[0], at[1]))
	}
	if len(list) > 0 {
		list = append(list, memoryProof(p.Memory()))
	}
	return list
}

func memoryProof(memory string) [32]byte {
	return graphiti.Digest("proof of a person: memory", memory)
}

// Why returns the reason for the doubt as a sentence.
func (d *Doubt) Why() string {
	switch {
	case d.unread:
		return "the owners of memories could not be read"
	case d.Was != "":
		return fmt.Sprintf("a key or an identity of %s belonged to the memory of %s before", d.ID, d.Was)
	}
	return fmt.Sprintf("no earlier key or identity of %[1]s matches %[2]s: the id may be another person's now", d.Memory, d.ID)
}

// Remedy returns the operator's next step.
func (d *Doubt) Remedy() string {
	accept := "graphiti-proxy registry accept " + d.ID
	switch {
	case d.unread:
		return "reload the configuration to try again"
	case d.Was == "" && d.Heir != "":
		return fmt.Sprintf("the stored memory may belong to  %s: confirm %s first", d.Heir, d.Heir)
	case d.Was == "":
		return fmt.Sprintf("if %s is the same person with other keys, run %s; if it is another person, run graphiti-proxy memory forget --user %s, and then %s", d.ID, accept, d.ID, accept)
	case d.Taken != "":
		return fmt.Sprintf("if %s was renamed, give %s another id, write key: %s next to id: %s in identity.users_file, and reload; if only the key or the identity has another owner now, run %s", d.ID, d.Taken, d.Was, d.ID, accept)
	}
	return fmt.Sprintf("if %s was renamed, write key: %s next to id: %s in identity.users_file, and reload; if not, run %s", d.ID, d.Was, d.ID, accept)
}

// Named reports whether Why and Remedy contain only IDs of people, which a log may
// contain. A memory's key may be a person's identity on a platform.
func (d *Doubt) Named() bool {
	return strings.HasPrefix(d.Memory, "user:") && personID.MatchString(d.Memory[5:]) &&
		(d.Was == "" || strings.HasPrefix(d.Was, "user:") && personID.MatchString(d.Was[5:]))
}
