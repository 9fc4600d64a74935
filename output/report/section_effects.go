package report

var effects = Section{
	Name: "effects",
	Doc: "What a document does to the annotator's own answer: confirm (right before and after), correct (wrong before, right after), flip " +
		"(right before, wrong after), inherit (wrong before and after), abstain (it decides nothing). Only a flip is misled by the document.",
	Of: func(d Data) []Table {
		if d.Effects == nil || d.Effects.Total() == 0 {
			return nil
		}
		t := byVerdict(*d.Effects, "effects", "Pairs by effect and by label")
		t.Head[0] = "effect"
		return []Table{t}
	},
}
