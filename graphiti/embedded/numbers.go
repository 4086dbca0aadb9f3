package embedded

// Numbers shape what is found and shown. They were fitted by a script on
// conversations between people; what they are compared by is the mean of runs in which
// each is off by up to a quarter, so that none of them stands on a peak
// (bench recall -jitter).
type Numbers struct {
	Saturation float64 // how soon a word that is said again adds nothing (BM25's k1)
	Length     float64 // how much a long message is held against (BM25's b)
	Name       float64 // of a speaker's name: most of what they say does not have it
	Light      float64 // of a word of grammar
	Kin        float64 // of a word that stands for one that the memory lacks
	Related    float64 // of a word that answers for one of the question
	Earlier    float64 // of a word that only what was asked before has
	Talk       float64 // of a conversation that has all the words
	Named      float64 // what is said by the one who is asked about
	OnDate     float64 // what was said in the month, or on the day, that is asked for
	InSpan     float64 // what was said in the week that is asked for, or the like
	TellsWhen  float64 // what speaks of a time, to who asks when
	AsksToo    float64 // what ends with a question
	OnlyAsks   float64 // what states nothing but a question
	Model      float64 // what a model said
	Curated    float64 // what somebody found worth promoting

	// Marginal is the part of the best one's worth below which a message is not shown:
	// it would cost more than it tells.
	Marginal float64
	Weakest  float64 // the same of strength

	// Of strength, see judge.
	Unsaid  float64 // in how many messages a word is that the memory lacks
	Proof   float64 // how many words that one message alone has are proof
	Request float64 // how strongly a message speaks to who asks nothing
	Hearsay float64 // how strongly what a model said speaks
}

// Fitted are the numbers in use.
var Fitted = Numbers{
	Saturation: 0.8, Length: 0.5, Name: 0.4, Light: 0.2, Kin: 0.7, Related: 0.5, Earlier: 0.3, Talk: 0.8, Named: 2.4,
	OnDate: 2.5, InSpan: 2, TellsWhen: 1.3, AsksToo: 0.9, OnlyAsks: 0.2, Model: 0.7, Curated: 1.2,
	Marginal: 0.15, Weakest: 0.25,
	Unsaid: 0.5, Proof: 1.26, Request: 0.26, Hearsay: 0.4,
}
