class Toolsrv < Formula
  desc "Serve tools to agents and programs, each call in a sandbox of WebAssembly"
  homepage "https://github.com/toolsrv/toolsrv"
  version "{{.Version}}"
  license "Apache-2.0"

  on_macos do
    depends_on arch: :arm64
    url "{{.URL "darwin_arm64"}}"
    sha256 "{{.Sum "darwin_arm64"}}"
  end

  on_linux do
    on_intel do
      url "{{.URL "linux_amd64"}}"
      sha256 "{{.Sum "linux_amd64"}}"
    end
    on_arm do
      url "{{.URL "linux_arm64"}}"
      sha256 "{{.Sum "linux_arm64"}}"
    end
  end

  def install
    bin.install "toolsrv"
    man1.install Dir["man/man1/*.1"]
    bash_completion.install "completions/toolsrv.bash" => "toolsrv"
    zsh_completion.install "completions/_toolsrv"
    fish_completion.install "completions/toolsrv.fish"
    doc.install "LICENSES", "NOTICE"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/toolsrv version")
  end
end
