package corpus

import "testing"

func TestRoles(t *testing.T) {
	for _, c := range []struct {
		role, kind Role
		want       bool
	}{
		{RoleMisleading, RoleConflicting, true}, {RoleMisleading, RoleNoisy, true}, {RoleMisleading, RoleMisleading, true},
		{RoleFabricated, RoleNoisy, true}, {RoleRandom, RoleNonConflicting, true}, {RoleRandom, RoleConflicting, false},
		{RoleSupporting, RoleNoisy, false}, {RoleAssociated, RoleSupporting, false}, {"", RoleNoisy, false},
	} {
		if got := c.role.Is(c.kind); got != c.want {
			t.Errorf("%q is %q: %v, want %v", c.role, c.kind, got, c.want)
		}
	}
	for label, want := range map[StanceLabel]Role{Supporting: RoleSupporting, Misleading: RoleMisleading, Unrelated: RoleUnrelated, "": RoleAssociated} {
		if got := RoleOf(label); got != want {
			t.Errorf("RoleOf(%q) = %q, want %q", label, got, want)
		}
	}
}
