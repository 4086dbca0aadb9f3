package embedded

// Numbers are the constants of ranking by words. A script has fitted them to conversations between people,
// by the mean of runs with each number off by up to a quarter, to avoid narrow peaks.
type Numbers struct {
	Saturation   float64 // how soon repeating a word adds nothing (BM25's k1)
	Length       float64 // how much the length of a message counts against it (BM25's b)
	Name         float64 // of a speaker's name: most of their messages do not have it
	Light        float64 // of a word of grammar
	Kin          float64 // of a word that replaces a similar word that the memory lacks
	Earlier      float64 // of a word that only an earlier question has
	Conversation float64 // of a message in a conversation that has all the words
	Named        float64 // of a message by the speaker that the question names
	OnDate       float64 // of a message from the month, or the day, in question
	InSpan       float64 // of a message from the week, or the like, in question
	AsksToo      float64 // of a message that ends with a question
	OnlyAsks     float64 // of a message that states nothing, or repeats the question
	Model        float64 // of a model's message
	Curated      float64 // of a promoted or summarised text

	// Marginal is the part of the best message's worth below which a message is not
	// shown: it would cost more than it tells.
	Marginal float64
	Weakest  float64 // the same for strength

	// Of strength, see judge.
	Unsaid  float64 // the assumed number of messages with a missing word
	Proof   float64 // the number of words in only one message that are proof
	Request float64 // the factor of strength for a request
	Hearsay float64 // the factor of strength for a model's message
}

// Fitted are the Numbers in use.
var Fitted = Numbers{
	Saturation: 0.8, Length: 0.5, Name: 0.4, Light: 0.2, Kin: 0.7, Earlier: 0.3, Conversation: 0.8, Named: 2.4,
	OnDate: 2.5, InSpan: 2, AsksToo: 0.9, OnlyAsks: 0.2, Model: 0.7, Curated: 1.2,
	Marginal: 0.15, Weakest: 0.25,
	Unsaid: 0.5, Proof: 1.26, Request: 0.19, Hearsay: 0.29,
}
