package identity

import (
	"fmt"
	"slices"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Doubt says that a registered person may not be the one whose memory their entry
// names: somebody was renamed, or an id was given to somebody else. The person has
// no memory until an operator confirms them.
type Doubt struct {
	ID     string // the person's
	Memory string // the key of the memory that they would have

	// Was is the other memory to which one of their keys or identities belonged
	// before. Empty: the doubt is that none of theirs belonged to Memory.
	Was   string
	Taken string // the id of the person who has the memory Was now; empty: nobody

	// Heir is the id of a person in doubt whose key or identity belonged to
	// Memory before. Empty: there is none.
	Heir string
}

// Judged is the result of Judge.
type Judged struct {
	people []Person
	Doubts []Doubt

	// Claims are the new proofs of the people who are not in doubt, with the
	// memory of each.
	Claims map[[32]byte]string
}

// Judge compares registered people with the memory to which each proof belonged
// before (known). In doubt is a person with a proof that belonged to another memory,
// and one whose memory had proofs before of which none is theirs. A person without
// keys and identities who never had any is not in doubt.
func Judge(list []Person, known map[[32]byte]string) Judged {
	j := Judged{people: slices.Clone(list), Claims: make(map[[32]byte]string)}
	byMemory := make(map[string]string, len(list))
	for i := range list {
		byMemory[list[i].Memory()] = list[i].ID
	}
	for i := range j.people {
		one := &j.people[i]
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
		if one.Doubted = d.Was != "" || seen && !theirs; one.Doubted {
			j.Doubts = append(j.Doubts, d)
			continue
		}
		for _, p := range proofs {
			if known[p] == "" {
				j.Claims[p] = d.Memory
			}
		}
	}
	heirs := make(map[string]string)
	for _, d := range j.Doubts {
		heirs[d.Was] = d.ID
	}
	for i := range j.Doubts {
		j.Doubts[i].Heir = heirs[j.Doubts[i].Memory]
	}
	return j
}

// DoubtAll puts everybody in doubt, for as long as the store cannot be read.
func DoubtAll(list []Person) Judged {
	j := Judged{people: slices.Clone(list)}
	for i := range j.people {
		j.people[i].Doubted = true
	}
	return j
}

// Proofs returns digests of what proves a person: their keys and their identities,
// and beside those the key of their memory. A person without keys and identities has
// none.
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

// Why says in a sentence why the person is in doubt.
func (d *Doubt) Why() string {
	if d.Was != "" {
		return fmt.Sprintf("a key or an identity of %s belonged to the memory of %s before", d.ID, d.Was)
	}
	return fmt.Sprintf("nothing that belonged to %s before is %s's now: the id may be somebody else's", d.Memory, d.ID)
}

// Remedy says what to do about it.
func (d *Doubt) Remedy() string {
	accept := "graphiti-proxy registry accept " + d.ID
	switch {
	case d.Was == "" && d.Heir != "":
		return fmt.Sprintf("what is held may be the memory of %s: confirm %s first", d.Heir, d.Heir)
	case d.Was == "":
		return fmt.Sprintf("if %s is the same person with other keys, run %s; if it is somebody else, run graphiti-proxy memory forget --user %s, and then %s", d.ID, accept, d.ID, accept)
	case d.Taken != "":
		return fmt.Sprintf("if %s was renamed, give %s another id, write key: %s beside id: %s in identity.users_file, and reload; if only the key or the identity has another owner now, run %s", d.ID, d.Taken, d.Was, d.ID, accept)
	}
	return fmt.Sprintf("if %s was renamed, write key: %s beside id: %s in identity.users_file, and reload; if not, run %s", d.ID, d.Was, d.ID, accept)
}

// Named reports whether Why and Remedy name people by their ids only, so that a log
// may hold them: the key of a memory may be somebody's identity on a platform.
func (d *Doubt) Named() bool {
	return strings.HasPrefix(d.Memory, "user:") && personID.MatchString(d.Memory[5:]) &&
		(d.Was == "" || strings.HasPrefix(d.Was, "user:") && personID.MatchString(d.Was[5:]))
}
