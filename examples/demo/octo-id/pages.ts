import type { OctoAccount } from './accounts'

/** Asks for the account and for the consent on one page. A button for each account does both. */
export function authorizePage(asked: Record<string, string>, accounts: readonly OctoAccount[]): string {
  const hidden = Object.entries(asked).map(
    ([name, value]) => `<input type="hidden" name="${escapeHtml(name)}" value="${escapeHtml(value)}">`,
  )
  return page(
    'Authorize',
    `<h1>Authorize Doorward demo</h1>
    <p class="lede">It will know your profile, and your email address if it is public.</p>
    <form method="post" action="/login/oauth/authorize" class="people">
      ${hidden.join('\n      ')}
      ${accounts.map(accountButton).join('\n      ')}
      <button class="quiet" name="account" value="">Cancel</button>
    </form>
    <p class="note">Octo ID knows no OpenID, and does not say whether an address is verified: the app links it only for somebody who is signed in.</p>`,
  )
}

export const refusalPage = page('Not possible', '<h1>That did not work</h1><p class="lede">Go back to the application and start again.</p>')

function accountButton({ login, name, email }: OctoAccount): string {
  return `<button name="account" value="${escapeHtml(login)}">
        <span class="avatar" aria-hidden="true">${escapeHtml(name.charAt(0))}</span>
        <span class="who"><span class="name">${escapeHtml(login)}</span> <span class="email">${escapeHtml(email ?? 'email kept private')}</span></span>
      </button>`
}

function page(title: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <meta name="color-scheme" content="light dark">
  <title>${escapeHtml(title)} · Octo ID</title>
  <link rel="icon" href="/assets/mark.svg">
  <link rel="stylesheet" href="/assets/style.css">
  <link rel="stylesheet" href="/assets/colors.css">
</head>
<body>
  <main>
    <p class="brand"><img src="/assets/mark.svg" alt="" width="28" height="28">Octo ID</p>
    ${body}
  </main>
</body>
</html>`
}

function escapeHtml(text: string): string {
  const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? character)
}
