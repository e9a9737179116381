// Sends the page's form as JSON. Then the browser goes to `?next=`, or to the front page.
const next = new URL(new URLSearchParams(location.search).get('next') ?? '/', location.origin)
const leave = () => location.assign(next.origin === location.origin ? next.href : '/')

const post = (path, body) => fetch(path, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) })

for (const form of document.forms)
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    const response = await post(form.getAttribute('action'), Object.fromEntries(new FormData(form)))
    if (response.ok) return leave()
    const { detail, details } = await response.json()
    form.querySelector('output').value = details.message ?? detail
  })

// Somebody whose access cookie has ended comes to the login page with `?next=`: renew it and go back.
if (location.pathname === '/login' && location.search !== '')
  post('/auth/refresh', {}).then((response) => {
    if (response.ok) leave()
  })
