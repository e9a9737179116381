import type { SentMail } from './create-outbox'

/** The newest mail first. Its text, not its HTML: what is shown here was written by somebody else. */
export function outboxPage(mails: readonly SentMail[]): string {
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>Outbox · Doorward demo</title>
    <link rel="icon" href="/mark.svg">
    <link rel="stylesheet" href="/style.css">
  </head>
  <body>
    <header>
      <p class="brand"><a href="/"><img src="/mark.svg" alt="" width="28" height="28">Doorward demo</a></p>
      <nav><a href="/outbox" aria-current="page">Outbox</a></nav>
    </header>
    <main class="middle">
      <div class="heading">
        <h1>Outbox</h1>
        <a class="button" href="/outbox">Look again</a>
      </div>
      <p class="notice"><strong>Demo only.</strong> These are the mails the app would have sent. Nothing leaves this machine, and everybody here can read everybody’s mail: a real app has no such page.</p>
      ${mails.length === 0 ? '<p class="quieter">No mail yet. Sign up, or ask for a new password.</p>' : mails.map(mailArticle).join('\n      ')}
    </main>
  </body>
</html>
`
}

function mailArticle(mail: SentMail): string {
  return `<article class="card mail" lang="${escapeHtml(mail.locale)}">
        <h2>${escapeHtml(mail.subject)}</h2>
        <p class="quieter">To ${escapeHtml(mail.to)}, <time datetime="${mail.sentAt.toISOString()}">${mail.sentAt.toLocaleTimeString('en-GB')}</time></p>
        <div class="text">${textWithLink(mail)}</div>
      </article>`
}

/** Only the link that the library made is one here, whatever else the text may hold. */
function textWithLink({ text, url }: SentMail): string {
  if (url === null) return escapeHtml(text.trim())
  const anchor = `<a href="${escapeHtml(url)}">${escapeHtml(url)}</a>`
  return text.trim().split(url).map(escapeHtml).join(anchor)
}

function escapeHtml(text: string): string {
  const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? character)
}
