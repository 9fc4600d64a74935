package corpus

// Role is what a document is to a claim, in the taxonomy of RAGuard (appendix A).
type Role string

// The values of Role; see Parent for their order.
const (
	RoleAssociated     Role = "associated" // found for the claim and not labelled yet
	RoleSupporting     Role = "supporting"
	RoleNoisy          Role = "noisy"
	RoleConflicting    Role = "conflicting"
	RoleMisleading     Role = "misleading"
	RoleFabricated     Role = "fabricated"  // written by an attack
	RoleUnambiguous    Role = "unambiguous" // conflicts, and openly so
	RoleNonConflicting Role = "non_conflicting"
	RoleUnrelated      Role = "unrelated" // found for the claim, and it does not bear on it
	RoleRandom         Role = "random"    // of another claim, dealt out by the shuffled control
)

// roleParents is the tree: noisy holds conflicting (misleading, fabricated, unambiguous) and non_conflicting
// (unrelated, random).
var roleParents = map[Role]Role{
	RoleConflicting: RoleNoisy, RoleMisleading: RoleConflicting, RoleFabricated: RoleConflicting, RoleUnambiguous: RoleConflicting,
	RoleNonConflicting: RoleNoisy, RoleUnrelated: RoleNonConflicting, RoleRandom: RoleNonConflicting,
}

// Parent is the role that r is a kind of, "" for one at the top.
func (r Role) Parent() Role { return roleParents[r] }

// Is reports whether r is a, or a kind of it.
func (r Role) Is(a Role) bool {
	for ; r != ""; r = r.Parent() {
		if r == a {
			return true
		}
	}
	return false
}

// RoleOf is the role of a document that was found for a claim and has this label.
func RoleOf(l StanceLabel) Role {
	switch l {
	case Supporting:
		return RoleSupporting
	case Misleading:
		return RoleMisleading
	case Unrelated:
		return RoleUnrelated
	}
	return RoleAssociated
}
