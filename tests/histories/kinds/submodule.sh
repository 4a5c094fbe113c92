# A submodule's pointer is added, moved, and turned into a file, also when the configuration says to
# ignore submodules.
start
lines 1 3 >a.txt
gitlink() {
  git update-index --add --cacheinfo "160000,$1,$2"
  # By that setting git 2.39 sees nothing to commit.
  git commit -q --allow-empty -m "gitlink"
}
printf '[submodule "mod"]\n\tpath = mod\n\turl = ../x\n\tignore = all\n' >.gitmodules
git config diff.ignoreSubmodules all
git add -A
gitlink 1111111111111111111111111111111111111111 mod
gitlink 3333333333333333333333333333333333333333 turned
git tag base
gitlink 2222222222222222222222222222222222222222 mod
made P1
gitlink 1111111111111111111111111111111111111111 added
made nobody
git update-index --force-remove turned
echo text | git hash-object -w --stdin >../id
git update-index --add --cacheinfo "100644,$(cat ../id),turned"
git commit -q --allow-empty -m "a file now"
made P2
#= unplanned added submodule unplanned #submodule
#= P1 mod submodule in #submodule
#= P2 turned submodule in #submodule
#= P2 turned +1 "text\n" in
