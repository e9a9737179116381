import type { Language } from '../language'
import type { SentMail } from './create-outbox'

const texts = {
  'en-US': {
    title: 'Outbox',
    lookAgain: 'Look again',
    demoOnly: 'Demo only.',
    warning:
      'These are the mails the app would have sent. Nothing leaves this machine, and everybody here can read everybody’s mail: a real app has no such page.',
    looking: 'Looking for new mail. It can take two seconds to arrive.',
    looked: (time: string) => `Looked at ${time}.`,
    empty: 'No mail yet. Sign up, or ask for a new password.',
    to: 'To',
    other: { language: 'pt-BR', name: 'Português' },
  },
  'pt-BR': {
    title: 'Caixa de saída',
    lookAgain: 'Olhar de novo',
    demoOnly: 'Só na demonstração.',
    warning:
      'Estes são os e-mails que o aplicativo teria enviado. Nada sai desta máquina, e aqui todos podem ler os e-mails de todos: um aplicativo de verdade não tem uma página assim.',
    looking: 'Procurando novos e-mails. Eles podem levar dois segundos para chegar.',
    looked: (time: string) => `Última consulta às ${time}.`,
    empty: 'Nenhum e-mail ainda. Cadastre-se ou peça uma nova senha.',
    to: 'Para',
    other: { language: 'en-US', name: 'English' },
  },
}

export interface NextLook {
  seconds: number
  path: string
}

/**
 * Returns the page with the mails, newest first. The page shows the text of a mail and not its HTML, because other people can write parts
 * of a mail.
 * @param nextLook when the page reloads itself without a script; null if the page does not reload itself
 */
export function outboxPage(mails: readonly SentMail[], language: Language, nextLook: NextLook | null): string {
  const { title, lookAgain, demoOnly, warning, looking, looked, empty, other } = texts[language]
  const articles = mails.map((mail) => mailArticle(mail, language)).join('\n      ')
  return `<!doctype html>
<html lang="${language}">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    ${nextLook ? `<meta http-equiv="refresh" content="${nextLook.seconds}; url=${nextLook.path}">` : ''}
    <title>${title} · Doorward demo</title>
    <link rel="icon" href="/mark.svg">
    <link rel="stylesheet" href="/style.css">
  </head>
  <body>
    <header>
      <p class="brand"><a href="/"><img src="/mark.svg" alt="" width="28" height="28">Doorward demo</a></p>
      <nav>
        <a href="/outbox" aria-current="page">${title}</a>
        <a href="?lang=${other.language}" hreflang="${other.language}" lang="${other.language}">${other.name}</a>
      </nav>
    </header>
    <main class="middle">
      <div class="heading">
        <h1>${title}</h1>
        <a class="button" href="/outbox">${lookAgain}</a>
      </div>
      <p class="notice"><strong>${demoOnly}</strong> ${warning}</p>
      <p class="quieter${nextLook ? ' under-way' : ''}">${nextLook ? looking : looked(clockTime(new Date()))}</p>
      ${mails.length > 0 ? articles : nextLook ? '' : `<p class="quieter">${empty}</p>`}
    </main>
  </body>
</html>
`
}

function mailArticle(mail: SentMail, language: Language): string {
  return `<article class="card mail" lang="${escapeHtml(mail.locale)}">
        <h2>${escapeHtml(mail.subject)}</h2>
        <p class="quieter" lang="${language}">${texts[language].to} ${escapeHtml(mail.to)}, <time datetime="${mail.sentAt.toISOString()}">${clockTime(mail.sentAt)}</time></p>
        <div class="text">${textWithLink(mail)}</div>
      </article>`
}

/** Returns the text of a mail as HTML. Only the link that the library made becomes a link. */
function textWithLink({ text, url }: SentMail): string {
  if (url === null) return escapeHtml(text.trim())
  const anchor = `<a href="${escapeHtml(url)}">${escapeHtml(url)}</a>`
  return text.trim().split(url).map(escapeHtml).join(anchor)
}

function clockTime(instant: Date): string {
  return instant.toLocaleTimeString('en-GB')
}

function escapeHtml(text: string): string {
  const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? character)
}
