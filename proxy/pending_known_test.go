package proxy

import "testing"

// TestKnown checks that isKnown is false for a turn that states a new fact, even within its
// question.
func TestKnown(t *testing.T) {
	const block = "- Josh, 2026-01-05: My cat eats fish and chicken.\n- Josh, 2026-01-05: My cat is called Miso.\n"
	for name, tc := range map[string]struct {
		block, said, answer string
		want                bool
	}{
		"asked and answered of what is shown": {block, "What is my cat called?", "Your cat is called Miso.", true},
		"nothing was shown":                   {"", "What is my cat called?", "Your cat is called Miso.", false},
		"the answer says more":                {block, "What is my cat called?", "Miso, and she was born in Lisbon in 2019.", false},
		"a statement before the question":     {block, "My cat is ill. What is she called?", "Your cat is called Miso.", false},
		"a statement within the question":     {block, "Since my cat Luna is diabetic, what does she eat?", "Your cat eats fish and chicken.", false},
		"a statement in another script":       {"- 我的猫叫咪咪 吃鱼\n", "我的狗叫旺财。猫叫什么？", "猫叫咪咪", false},
	} {
		if got := isKnown(tc.block, tc.said, tc.answer); got != tc.want {
			t.Errorf("%s: known is %v, want %v", name, got, tc.want)
		}
	}
}
