package linuxpackage

// tidy removes the operator's files, and the user, before another package is installed.
const tidy = "rm -rf /etc/toolsrv /var/lib/toolsrv /var/cache/toolsrv /var/log/toolsrv.log; if getent passwd toolsrv >/dev/null; then userdel toolsrv; fi"

// rpm installs Fedora's package, upgrades it under load, and erases it. The dependencies are Debian packages here, unknown to rpm.
func (d *debian) rpm() {
	d.run(tidy)
	// Fedora's policy: units without a preset are disabled.
	d.run("mkdir -p /etc/systemd/system-preset; echo 'disable *' >/etc/systemd/system-preset/99-default-disable.preset")
	d.run("rpm --force-debian --nodeps --install /old.rpm")
	d.want("does not start by itself", "inactive inactive disabled disabled", "echo $(systemctl is-active toolsrv toolsrv.socket; systemctl is-enabled toolsrv toolsrv.socket)")
	d.want("has a user", "toolsrv", "id --user --name toolsrv")
	d.want("can't write to the folder of its tools", "755 root", "stat --format '%a %U' /var/lib/toolsrv/tools")
	d.run("rpm --verify --nodeps toolsrv")
	d.setUp("credentials")
	d.run("systemctl enable --quiet --now toolsrv")
	d.eventually("serves a tool", "200", status)
	d.want("nobody else can read its state", "700 toolsrv", "stat --format '%a %U' /var/lib/toolsrv/state")

	d.upgrade("rpm --force-debian --nodeps --upgrade /new.rpm")
	d.want("was not restarted", "0", "systemctl show --property NRestarts --value toolsrv")
	d.want("is enabled still", "enabled", "systemctl is-enabled toolsrv")
	d.want("still has its operator's configuration", "1", "grep --count '^tokens_file' /etc/toolsrv/toolsrv.toml")

	d.run("rpm --force-debian --nodeps --erase toolsrv")
	d.want("has stopped", "inactive", "systemctl is-active toolsrv || true")
	d.want("is not started with the machine", "", "find /etc/systemd/system -name '*toolsrv*'")
	d.want("keeps a copy of the changed configuration", "tokens toolsrv.toml.rpmsave", "echo $(ls /etc/toolsrv)")
	d.run("test -e /var/lib/toolsrv/state/state.db -a -e /var/lib/toolsrv/tools/fuzzy.wasm")
}
