package planner

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
	"unicode"
)

// Calc evaluates an expression exactly, in fractions: numbers, + - * / ^, brackets, percentages, units of
// length, mass, time, area, volume and data, and conversions, and nothing else.
//
//	1,250 * 12                 15000
//	15% of 80                  12
//	change from 40 to 50       25%
//	26.2 mi in km              42.1648128 km
//
// A result without a finite decimal form is cut after ten digits and ends in "…". What it cannot read is
// an error that quotes the place; it never guesses.
func Calc(expression string) (string, error) {
	p := &calcParser{rest: calcTokens(expression)}
	if len(p.rest) > maxCalcTokens {
		return "", fmt.Errorf("calculate %.60q: longer than %d numbers and signs", expression, maxCalcTokens)
	}
	q, err := p.all()
	if err != nil {
		return "", fmt.Errorf("calculate %.60q: %w", expression, err)
	}
	return q.String(), nil
}

// Bounds of a calculation, so that no expression of a model takes long or fills the memory.
const (
	maxCalcTokens = 200
	maxCalcBits   = 4096
	maxCalcPower  = 64
	maxCalcDepth  = 40
)

// A quantity is a number with the dimensions of its units; percent marks a share that was written or
// computed as one.
type quantity struct {
	n       *big.Rat
	dim     dimension
	unit    string // to be shown in; "" for the base units
	percent bool
}

// dimension counts powers of length, mass, time and data.
type dimension [4]int

// A calcUnit is how many base units (metre, kilogram, second, byte) one of it is.
type calcUnit struct {
	factor string // a fraction
	dim    dimension
}

var (
	calcLength = dimension{1, 0, 0, 0}
	calcArea   = dimension{2, 0, 0, 0}
	calcVolume = dimension{3, 0, 0, 0}
	calcMass   = dimension{0, 1, 0, 0}
	calcTime   = dimension{0, 0, 1, 0}
	calcData   = dimension{0, 0, 0, 1}
)

// calcUnits are exact by definition: the international yard and pound of 1959, the US gallon of 231 cubic
// inches, the Gregorian year of 365.2425 days and a twelfth of it. Units that depend on a date (currencies)
// or on a zero point (temperatures) are not here.
var calcUnits = map[string]calcUnit{
	"mm": {"1/1000", calcLength}, "cm": {"1/100", calcLength}, "m": {"1", calcLength}, "km": {"1000", calcLength},
	"in": {"127/5000", calcLength}, "ft": {"381/1250", calcLength}, "yd": {"1143/1250", calcLength}, "mi": {"201168/125", calcLength},
	"ha": {"10000", calcArea}, "acre": {"316160658/78125", calcArea},
	"l": {"1/1000", calcVolume}, "gal": {"473176473/125000000000", calcVolume},
	"mg": {"1/1000000", calcMass}, "g": {"1/1000", calcMass}, "kg": {"1", calcMass}, "t": {"1000", calcMass},
	"lb": {"45359237/100000000", calcMass}, "oz": {"45359237/1600000000", calcMass},
	"s": {"1", calcTime}, "min": {"60", calcTime}, "h": {"3600", calcTime}, "day": {"86400", calcTime}, "week": {"604800", calcTime},
	"month": {"2629746", calcTime}, "year": {"31556952", calcTime},
	"byte": {"1", calcData}, "kb": {"1000", calcData}, "mb": {"1000000", calcData}, "gb": {"1000000000", calcData}, "tb": {"1000000000000", calcData},
}

// calcNames are other names of units.
var calcNames = map[string]string{
	"millimetre": "mm", "millimeter": "mm", "centimetre": "cm", "centimeter": "cm", "metre": "m", "meter": "m", "kilometre": "km", "kilometer": "km",
	"inch": "in", "inches": "in", "foot": "ft", "feet": "ft", "yard": "yd", "mile": "mi", "hectare": "ha", "litre": "l", "liter": "l", "gallon": "gal",
	"milligram": "mg", "gram": "g", "kilogram": "kg", "tonne": "t", "pound": "lb", "lbs": "lb", "ounce": "oz",
	"second": "s", "sec": "s", "minute": "min", "hour": "h", "hr": "h", "d": "day", "yr": "year",
	"kilobyte": "kb", "megabyte": "mb", "gigabyte": "gb", "terabyte": "tb",
}

// calcScales are numbers in words.
var calcScales = map[string]string{"hundred": "100", "thousand": "1000", "million": "1000000", "billion": "1000000000", "trillion": "1000000000000"}

// unitNamed finds a unit by any of its names, in the singular or the plural.
func unitNamed(word string) (string, bool) {
	for _, w := range []string{word, strings.TrimSuffix(word, "s")} {
		if name, ok := calcNames[w]; ok {
			return name, true
		}
		if _, ok := calcUnits[w]; ok {
			return w, true
		}
	}
	return "", false
}

// calcTokens splits an expression into numbers, words and signs. Commas between digits group thousands.
func calcTokens(s string) []string {
	var out []string
	r := []rune(strings.NewReplacer("×", "*", "·", "*", "÷", "/", "−", "-", "–", "-", "**", "^", "$", "", "€", "", "£", "").Replace(strings.ToLower(s)))
	for i := 0; i < len(r); {
		j := i + 1
		switch {
		case unicode.IsSpace(r[i]):
			i = j
			continue
		case calcDigit(r[i]) || r[i] == '.' && j < len(r) && calcDigit(r[j]):
			for j < len(r) && (calcDigit(r[j]) || (r[j] == '.' || r[j] == ',') && j+1 < len(r) && calcDigit(r[j+1])) {
				j++
			}
		case unicode.IsLetter(r[i]):
			for j < len(r) && unicode.IsLetter(r[j]) {
				j++
			}
		}
		out = append(out, string(r[i:j]))
		i = j
	}
	return out
}

func calcDigit(r rune) bool { return r >= '0' && r <= '9' }

type calcParser struct {
	rest  []string
	depth int
}

func (p *calcParser) peek() string {
	if len(p.rest) == 0 {
		return ""
	}
	return p.rest[0]
}

func (p *calcParser) take(words ...string) bool {
	if len(p.rest) < len(words) {
		return false
	}
	for i, w := range words {
		if p.rest[i] != w {
			return false
		}
	}
	p.rest = p.rest[len(words):]
	return true
}

// all reads the whole expression: a change, or a sum, with an optional unit to give it in.
func (p *calcParser) all() (quantity, error) {
	if len(p.rest) == 0 {
		return quantity{}, errors.New("nothing to calculate")
	}
	change := p.take("percent", "change", "from") || p.take("change", "from")
	q, err := p.sum()
	if err != nil {
		return quantity{}, err
	}
	if change {
		if !p.take("to") {
			return quantity{}, p.unexpected("to")
		}
		to, err := p.sum()
		if err != nil {
			return quantity{}, err
		}
		if q, err = changeOf(q, to); err != nil {
			return quantity{}, err
		}
	}
	if p.take("in") || p.take("to") || p.take("as") {
		if q, err = p.shown(q); err != nil {
			return quantity{}, err
		}
	}
	if len(p.rest) > 0 {
		return quantity{}, p.unexpected("the end")
	}
	return q, nil
}

// changeOf is the change from one quantity to another, as a share of the first.
func changeOf(from, to quantity) (quantity, error) {
	if from.dim != to.dim {
		return quantity{}, errors.New("the two have different units")
	}
	if from.n.Sign() == 0 {
		return quantity{}, errors.New("a change from zero is no percentage")
	}
	d := new(big.Rat).Sub(to.n, from.n)
	return quantity{n: d.Quo(d, new(big.Rat).Abs(from.n)), percent: true}, nil
}

// shown gives a quantity in another unit, or a number in percent.
func (p *calcParser) shown(q quantity) (quantity, error) {
	if p.take("%") || p.take("percent") {
		if q.dim != (dimension{}) {
			return quantity{}, errors.New("a quantity with a unit is no percentage")
		}
		q.percent = true
		return q, nil
	}
	name, ok := unitNamed(p.peek())
	if !ok {
		return quantity{}, p.unexpected("a unit")
	}
	p.rest = p.rest[1:]
	if calcUnits[name].dim != q.dim {
		return quantity{}, fmt.Errorf("it cannot be given in %s", name)
	}
	q.unit = name
	return q, nil
}

func (p *calcParser) unexpected(want string) error {
	if len(p.rest) == 0 {
		return fmt.Errorf("it ends where %s should stand", want)
	}
	return fmt.Errorf("%q stands where %s should", p.peek(), want)
}

func (p *calcParser) sum() (quantity, error) {
	if p.depth++; p.depth > maxCalcDepth {
		return quantity{}, errors.New("too many brackets")
	}
	defer func() { p.depth-- }()
	q, err := p.product()
	for err == nil {
		minus := p.peek() == "-"
		if !p.take("+") && !p.take("-") {
			return q, nil
		}
		var next quantity
		if next, err = p.product(); err != nil {
			break
		}
		q, err = add(q, next, minus)
	}
	return quantity{}, err
}

// add adds what has the same units. A percentage that is added to a number is one of it, as in 80 + 15%.
func add(a, b quantity, minus bool) (quantity, error) {
	n := new(big.Rat).Set(b.n)
	switch {
	case b.percent && !a.percent:
		n.Mul(n, a.n)
	case a.dim != b.dim || a.percent != b.percent:
		return quantity{}, errors.New("quantities of different units cannot be added")
	}
	if minus {
		n.Neg(n)
	}
	a.n = new(big.Rat).Add(a.n, n)
	return a, checkSize(a.n)
}

func (p *calcParser) product() (quantity, error) {
	q, err := p.power()
	for err == nil {
		over := false
		switch {
		case p.take("*"), p.take("of"), p.take("x"), p.take("times"):
		case p.take("/"), p.take("per"), p.take("divided", "by"):
			over = true
		default:
			return q, nil
		}
		var next quantity
		if next, err = p.power(); err != nil {
			break
		}
		q, err = multiply(q, next, over)
	}
	return quantity{}, err
}

func multiply(a, b quantity, over bool) (quantity, error) {
	out := quantity{dim: a.dim}
	sign := 1
	if over {
		if sign = -1; b.n.Sign() == 0 {
			return quantity{}, errors.New("division by zero")
		}
		out.n = new(big.Rat).Quo(a.n, b.n)
	} else {
		out.n = new(big.Rat).Mul(a.n, b.n)
	}
	for i := range out.dim {
		out.dim[i] += sign * b.dim[i]
	}
	// A share of a share is one; a share of a number is a number.
	out.percent = a.percent && b.percent && !over
	return out, checkSize(out.n)
}

func (p *calcParser) power() (quantity, error) {
	q, err := p.value()
	if err != nil || !p.take("^") {
		return q, err
	}
	e, err := p.power()
	if err != nil {
		return quantity{}, err
	}
	if !e.n.IsInt() || e.dim != (dimension{}) || !e.n.Num().IsInt64() || e.n.Num().Int64() < -maxCalcPower || e.n.Num().Int64() > maxCalcPower {
		return quantity{}, fmt.Errorf("a power must be a whole number of at most %d", maxCalcPower)
	}
	k := int(e.n.Num().Int64())
	base := quantity{n: q.n, dim: q.dim}
	out := quantity{n: big.NewRat(1, 1)}
	for range max(k, -k) {
		if out, err = multiply(out, base, k < 0); err != nil {
			return quantity{}, err
		}
	}
	return out, nil
}

func (p *calcParser) value() (quantity, error) {
	switch {
	case p.take("-"):
		if p.depth++; p.depth > maxCalcDepth {
			return quantity{}, errors.New("too many signs")
		}
		defer func() { p.depth-- }()
		q, err := p.value()
		if err != nil {
			return quantity{}, err
		}
		q.n = new(big.Rat).Neg(q.n)
		return q, nil
	case p.take("("):
		q, err := p.sum()
		if err != nil {
			return quantity{}, err
		}
		if !p.take(")") {
			return quantity{}, p.unexpected("a closing bracket")
		}
		return p.units(q)
	}
	word := p.peek()
	if word == "" || !calcDigit(rune(word[0])) && word[0] != '.' {
		return quantity{}, p.unexpected("a number")
	}
	n, err := calcNumber(word)
	if err != nil {
		return quantity{}, err
	}
	p.rest = p.rest[1:]
	for {
		scale, ok := calcScales[p.peek()]
		if !ok {
			break
		}
		p.rest = p.rest[1:]
		by, _ := new(big.Rat).SetString(scale)
		n.Mul(n, by)
	}
	return p.units(quantity{n: n})
}

// units reads what follows a number: a percent sign or a unit.
func (p *calcParser) units(q quantity) (quantity, error) {
	if p.take("%") || p.take("percent") {
		if q.dim != (dimension{}) {
			return quantity{}, errors.New("a quantity with a unit is no percentage")
		}
		q.n = new(big.Rat).Mul(q.n, big.NewRat(1, 100))
		q.percent = true
		return q, nil
	}
	name, ok := unitNamed(p.peek())
	// "in" is the inch and the word before a unit: 3 in in cm.
	if !ok || name == "in" && p.peek() == "in" && len(p.rest) > 1 && p.rest[1] != "in" && p.rest[1] != ")" {
		return q, nil
	}
	p.rest = p.rest[1:]
	u := calcUnits[name]
	factor, _ := new(big.Rat).SetString(u.factor)
	q, err := multiply(q, quantity{n: factor, dim: u.dim}, false)
	q.unit = name
	return q, err
}

// calcNumber reads 1,250.5: commas must group thousands, so that 1,5 is not taken for fifteen.
func calcNumber(word string) (*big.Rat, error) {
	whole, fraction, _ := strings.Cut(word, ".")
	groups := strings.Split(whole, ",")
	for i, g := range groups {
		if i > 0 && len(g) != 3 || i == 0 && len(groups) > 1 && (len(g) > 3 || g == "") {
			return nil, fmt.Errorf("%q is no number: commas group thousands", word)
		}
	}
	if strings.ContainsAny(fraction, ".,") || len(word) > 60 {
		return nil, fmt.Errorf("%.60q is no number", word)
	}
	n, ok := new(big.Rat).SetString(strings.Join(groups, "") + "." + fraction + "0")
	if !ok {
		return nil, fmt.Errorf("%q is no number", word)
	}
	return n, nil
}

func checkSize(n *big.Rat) error {
	if n.Num().BitLen() > maxCalcBits || n.Denom().BitLen() > maxCalcBits {
		return errors.New("the numbers grow too large")
	}
	return nil
}

// String writes the quantity as a decimal, with its unit or a percent sign.
func (q quantity) String() string {
	n, suffix := new(big.Rat).Set(q.n), ""
	switch {
	case q.percent:
		n.Mul(n, big.NewRat(100, 1))
		suffix = "%"
	case q.unit != "" && calcUnits[q.unit].dim == q.dim:
		factor, _ := new(big.Rat).SetString(calcUnits[q.unit].factor)
		n.Quo(n, factor)
		suffix = " " + q.unit
	case q.dim != dimension{}:
		suffix = " " + q.dim.String()
	}
	const digits = 10
	if exact, ok := n.FloatPrec(); ok && exact <= digits {
		return n.FloatString(exact) + suffix
	}
	s := n.FloatString(digits + 5)
	return s[:len(s)-5] + "…" + suffix
}

// String writes base units, as m^2/s.
func (d dimension) String() string {
	var over, under []string
	for i, name := range []string{"m", "kg", "s", "byte"} {
		switch k := d[i]; {
		case k == 1:
			over = append(over, name)
		case k > 1:
			over = append(over, fmt.Sprintf("%s^%d", name, k))
		case k == -1:
			under = append(under, name)
		case k < -1:
			under = append(under, fmt.Sprintf("%s^%d", name, -k))
		}
	}
	if len(over) == 0 {
		over = []string{"1"}
	}
	s := strings.Join(over, " ")
	for _, u := range under {
		s += "/" + u
	}
	return s
}
