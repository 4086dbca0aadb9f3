package index

import "strings"

// irregular are the forms of English words that no rule makes, and the word that
// each is a form of. Forms that are more often a word of their own ("rose",
// "ground") are left out.
var irregular = func() map[string]string {
	m := make(map[string]string)
	for line := range strings.Lines(irregularForms) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		for _, w := range words[1:] {
			m[w] = words[0]
		}
	}
	return m
}()

// irregularLengths has by the first letter of irregular forms a bit for each of
// their lengths: of most other words that is enough to know.
var irregularLengths = func() (t [256]uint32) {
	for w := range irregular {
		t[w[0]] |= 1 << len(w)
	}
	return t
}()

// regular is the word that a form is of where that is irregular, else itself.
func regular(form []byte) []byte {
	if len(form) < 32 && irregularLengths[form[0]]>>len(form)&1 != 0 {
		if word, ok := irregular[string(form)]; ok {
			return append(form[:0], word...)
		}
	}
	return form
}

const irregularForms = `
	arise arose arisen
	beat beaten
	become became
	begin began begun
	bend bent
	bite bit bitten
	blow blew blown
	break broke broken
	breed bred
	bring brought
	build built
	burn burnt
	buy bought
	catch caught
	child children
	choose chose chosen
	come came
	deal dealt
	dig dug
	draw drew drawn
	dream dreamt
	drink drank drunk
	drive drove driven
	eat ate eaten
	fall fell fallen
	feed fed
	feel felt
	fight fought
	find found
	flee fled
	fly flew flown
	foot feet
	forbid forbade forbidden
	forget forgot forgotten
	forgive forgave forgiven
	freeze froze frozen
	get got gotten
	give gave given
	go went gone goes
	grow grew grown
	hang hung
	hear heard
	hide hid hidden
	hold held
	keep kept
	kneel knelt
	knife knives
	know knew known
	lead led
	leap leapt
	learn learnt
	lend lent
	lose lost
	make made
	man men
	mean meant
	meet met
	mouse mice
	overcome overcame
	pay paid
	prove proven
	ride rode ridden
	ring rang rung
	run ran
	see saw seen
	seek sought
	sell sold
	send sent
	sew sewn
	shake shook shaken
	shelf shelves
	shine shone
	shoot shot
	show shown
	shrink shrank shrunk
	sing sang sung
	sink sank sunk
	sit sat
	sleep slept
	slide slid
	speak spoke spoken
	spell spelt
	spend spent
	spin spun
	stand stood
	steal stole stolen
	stick stuck
	sting stung
	strike struck
	swear swore sworn
	sweep swept
	swim swam swum
	swing swung
	take took taken
	teach taught
	tear tore torn
	think thought
	throw threw thrown
	tooth teeth
	understand understood
	wake woke woken
	wear wore worn
	weave wove woven
	weep wept
	wife wives
	win won
	wind wound
	woman women
	write wrote written
`
