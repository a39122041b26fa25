// Shows who is signed in.
const root = location.pathname.replace(/ui\/.*$/, "").replace(/[^/]*$/, "");
const response = await fetch(`${root}api/whoami`);
if (response.ok) {
  const me = await response.json();
  document.getElementById("who").textContent = `Signed in as ${me.id}.`;
}
