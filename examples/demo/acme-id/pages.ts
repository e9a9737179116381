import { type Person, people } from './people'

/** Asks who is logging in. There are no passwords, because all people here are invented. */
export function signInPage(uid: string, application: string): string {
  return page(
    'Sign in',
    `<h1>Sign in</h1>
    <p class="lede">to continue to <strong>${escapeHtml(application)}</strong></p>
    <form method="post" action="/interaction/${escapeHtml(uid)}/sign-in" class="people">
      ${people.map(personButton).join('\n')}
    </form>
    ${cancelForm(uid)}
    <p class="note">These people are made up, so there is no password. Everything after this click is the real protocol.</p>`,
  )
}

/** Asks for the person's consent, and shows the values that the application will get. */
export function consentPage(uid: string, application: string, person: Person): string {
  return page(
    'Share your account',
    `<h1>Share your account?</h1>
    <p class="lede"><strong>${escapeHtml(application)}</strong> asks Acme ID for these things about you.</p>
    <dl class="shared">
      <div><dt>Name</dt><dd>${escapeHtml(person.name)}</dd></div>
      <div><dt>Email</dt><dd>${escapeHtml(person.email)}<span class="verified">verified</span></dd></div>
      <div><dt>Acme ID</dt><dd><code>${escapeHtml(person.id)}</code></dd></div>
    </dl>
    <form method="post" action="/interaction/${escapeHtml(uid)}/consent">
      <button class="primary">Share and continue</button>
    </form>
    ${cancelForm(uid)}`,
  )
}

export function errorPage(message: string): string {
  return page('Something went wrong', `<h1>That did not work</h1><p class="lede">${escapeHtml(message)}</p>`)
}

function personButton(person: Person): string {
  return `<button name="person" value="${escapeHtml(person.id)}">
        <span class="avatar" aria-hidden="true">${escapeHtml(person.name.charAt(0))}</span>
        <span class="who"><span class="name">${escapeHtml(person.name)}</span> <span class="email">${escapeHtml(person.email)}</span></span>
      </button>`
}

function cancelForm(uid: string): string {
  return `<form method="post" action="/interaction/${escapeHtml(uid)}/cancel"><button class="quiet">Cancel</button></form>`
}

function page(title: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <meta name="color-scheme" content="light dark">
  <title>${escapeHtml(title)} · Acme ID</title>
  <link rel="icon" href="/assets/mark.svg">
  <link rel="stylesheet" href="/assets/style.css">
</head>
<body>
  <main>
    <p class="brand"><img src="/assets/mark.svg" alt="" width="28" height="28">Acme ID</p>
    ${body}
  </main>
</body>
</html>`
}

function escapeHtml(text: string): string {
  const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? character)
}
