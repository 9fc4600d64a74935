package report

var controls = Section{
	Name: "controls",
	Doc: "What the annotator answers to a claim alone, without any document: its own belief, which a label by a document can only be read " +
		"against.",
	Of: func(d Data) []Table {
		if d.Zero == nil || d.Zero.Total() == 0 {
			return nil
		}
		t := byVerdict(*d.Zero, "zero", "Claims by the answer without evidence and by verdict")
		right, answered := d.Zero.Count("true", "true")+d.Zero.Count("false", "false"), 0
		for _, a := range []string{"true", "false"} {
			for _, v := range d.Zero.Columns {
				answered += d.Zero.Count(a, v)
			}
		}
		t.Head[0], t.Note = "answer", "Right of those that it answered: "+percent(right, answered)+"."
		return []Table{t}
	},
}
