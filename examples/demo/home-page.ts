import { html } from 'doorward'
import type { Language } from './language'

/** The logged-in person, as the app knows the person. */
export interface Guest {
  readonly email: string
  readonly name: string | null
}

const texts = {
  'en-US': {
    lead: 'An ordinary Express app. Its sign-in, its account pages and its mails are doorward’s.',
    stranger: 'Nobody is signed in.',
    signIn: 'Sign in',
    signUp: 'Create an account',
    welcome: 'You are signed in as',
    account: 'Your account',
    signOut: 'Sign out',
    notes: 'Your notes',
    notesHint: 'Only for people who are signed in: others sign in first, and come back.',
    noNotes: 'You have no notes yet. A real app shows here what is yours.',
    home: 'Back to the first page',
    outbox: 'Outbox',
    other: { language: 'pt-BR', name: 'Português' },
  },
  'pt-BR': {
    lead: 'Um aplicativo Express comum. O login, as páginas da conta e os e-mails são do doorward.',
    stranger: 'Ninguém entrou ainda.',
    signIn: 'Entrar',
    signUp: 'Criar uma conta',
    welcome: 'Você entrou como',
    account: 'Sua conta',
    signOut: 'Sair',
    notes: 'Suas notas',
    notesHint: 'Só para quem entrou: os outros entram primeiro e voltam para cá.',
    noNotes: 'Você ainda não tem notas. Um aplicativo de verdade mostra aqui o que é seu.',
    home: 'Voltar à primeira página',
    outbox: 'Caixa de saída',
    other: { language: 'en-US', name: 'English' },
  },
} as const

/** Returns the public page. The page links to the library's pages. Its only form logs the person out. */
export function homePage(language: Language, authPrefix: string, guest: Guest | null): string {
  const text = texts[language]
  const ways = guest
    ? html`<p>${text.welcome} <strong>${guest.name ?? guest.email}</strong>.</p>
<p class="buttons"><a class="button primary" href="${authPrefix}/account">${text.account}</a></p>
<form method="post" action="${authPrefix}/logout"><input type="hidden" name="return_to" value="/"><button class="button">${text.signOut}</button></form>`
    : html`<p>${text.stranger}</p>
<p class="buttons"><a class="button primary" href="${authPrefix}/login?return_to=/">${text.signIn}</a> <a class="button" href="${authPrefix}/signup?return_to=/">${text.signUp}</a></p>`
  return page(
    language,
    html`<h1>Doorward demo</h1>
<p class="lede">${text.lead}</p>
<section class="card">${ways}</section>
<section class="card"><h2><a href="/notes">${text.notes}</a></h2><p class="quieter">${text.notesHint}</p></section>`,
  )
}

/** Returns a page for people who are logged in. */
export function notesPage(language: Language, guest: Guest): string {
  const text = texts[language]
  return page(
    language,
    html`<h1>${text.notes}</h1>
<p class="lede">${text.welcome} <strong>${guest.email}</strong>.</p>
<section class="card"><p>${text.noNotes}</p></section>
<p><a href="/">${text.home}</a></p>`,
  )
}

function page(language: Language, main: ReturnType<typeof html>): string {
  const text = texts[language]
  return html`<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Doorward demo</title>
<link rel="icon" href="/mark.svg">
<link rel="stylesheet" href="/style.css">
</head>
<body>
<header>
<p class="brand"><a href="/"><img src="/mark.svg" alt="" width="28" height="28">Doorward demo</a></p>
<nav><a href="/outbox">${text.outbox}</a> <a href="?lang=${text.other.language}" hreflang="${text.other.language}" lang="${text.other.language}">${text.other.name}</a></nav>
</header>
<main class="middle">
${main}
</main>
</body>
</html>
`.markup
}
