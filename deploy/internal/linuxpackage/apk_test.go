package linuxpackage

// apk does what Alpine's apk does with a package: it runs the scripts with busybox's shell, and installs the files, except over a configuration
// that the operator has changed. OpenRC runs the service, although systemd has booted the machine.
func (d *debian) apk() {
	d.run(tidy)
	d.run("for build in old new; do mkdir /apk.$build; tar --extract --gzip --warning=no-unknown-keyword --file /$build.apk --directory /apk.$build; done")
	const before = "busybox sh /apk.old/.pre-install 1 >/dev/null"
	d.run(before + "; cp -a /apk.old/etc /apk.old/usr /")
	d.want("has a user", "toolsrv:/var/lib/toolsrv:/sbin/nologin", "getent passwd toolsrv | cut -d: -f1,6,7")
	d.want("has a group", "toolsrv", "id --group --name toolsrv")
	d.want("has no password", "toolsrv L", "passwd --status toolsrv | cut -d' ' -f1,2")
	d.run(before)
	d.want("still has its user after a second run", "toolsrv", "id --user --name toolsrv")

	// OpenRC has not booted this machine: its file systems were mounted by systemd.
	d.run("mkdir -p /run/openrc /var/lib/toolsrv/tools; touch /run/openrc/softlevel")
	d.run("printf '#!/sbin/openrc-run\\nstart() { :; }\\n' >/etc/init.d/localmount; chmod +x /etc/init.d/localmount; /lib/rc/bin/rc-depend -u >/dev/null")
	d.setUp("etc/toolsrv/tokens")
	d.run("chgrp toolsrv /etc/toolsrv/tokens; chmod 640 /etc/toolsrv/tokens; rc-service toolsrv start >/dev/null")
	d.eventually("serves a tool", "200", status)
	d.want("runs as a user of its own", "toolsrv", "stat --format %U /proc/$(pgrep --exact --oldest toolsrv)")
	d.want("nobody else can read its state", "700 toolsrv", "stat --format '%a %U' /var/lib/toolsrv/state")
	d.want("can't write to the folder of its tools", "755 root", "stat --format '%a %U' /var/lib/toolsrv/tools")
	d.run("cp /etc/toolsrv/toolsrv.toml /root/before; echo nonsense >>/etc/toolsrv/toolsrv.toml; rc-service toolsrv reload >/dev/null")
	d.eventually("says why a configuration was not loaded", "1", "grep --count 'the configuration stays as it was' /var/log/toolsrv.log")
	d.run("cp /root/before /etc/toolsrv/toolsrv.toml; rc-service toolsrv reload >/dev/null")

	d.upgrade("cp -a --remove-destination /apk.new/usr /; cp -a /apk.new/etc/init.d /etc; busybox sh /apk.new/.post-upgrade 2 1 >/dev/null")
	d.run("busybox sh /apk.new/.pre-deinstall 2 >/dev/null")
	d.want("has stopped", "", "pgrep --exact toolsrv || true")
	d.run("busybox sh /apk.new/.post-upgrade 2 1 >/dev/null; test -e /var/lib/toolsrv/state/state.db")
	d.want("stays stopped after an upgrade", "", "pgrep --exact toolsrv || true")
}
