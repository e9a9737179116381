import { Html, html } from '../http/html'
import type { Locale } from '../http/locale'
import type { PageInput } from '../page-templates'
import { formTexts, pageTexts } from './page-texts'

/** Our own look, for every page a host does not replace. Complete without script, and without any load. */
export function renderPage(input: PageInput): string {
  const { page, locale, loginUrl, styleNonce, items } = input
  const { title, lead, list, button } = pageTexts[page]
  const markup = html`<!doctype html>
<html lang="${locale}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${title[locale]}</title>
<style nonce="${styleNonce}">${style}</style>
</head>
<body>
<main>
<h1>${title[locale]}</h1>
<p>${lead[locale]}</p>
${items.length === 0 ? null : html`${list ? html`<p class="list">${list[locale]}</p>` : null}<ul>${items.map((item) => html`<li>${item}</li>`)}</ul>`}
${button ? form(input, button[locale]) : loginLink(loginUrl, locale)}
</main>
</body>
</html>
`
  return markup.markup
}

function form({ page, problem, locale, loginUrl, challenge, password }: PageInput, button: string): Html {
  return html`<form method="post"${challenge && html` action="${challenge.action}"`}>
${problem === null ? null : html`<p class="problem" role="alert" id="problem">${problem}</p>`}
${page === 'password_reset' ? passwordFields(problem, locale) : null}${challenge && codeField(challenge.mfaToken, problem, locale)}${password && passwordField(problem, locale, password.canSkip)}
<button type="submit">${button}</button>
${page === 'email_change' && problem !== null && password === null ? loginLink(loginUrl, locale, 'button second') : null}
${password?.canSkip ? html`<button type="submit" name="forgot" value="1" class="second" formnovalidate>${formTexts.forgot[locale]}</button>` : null}
</form>`
}

function passwordFields(problem: string | null, locale: Locale): Html {
  const described = problem === null ? null : html` aria-describedby="problem" aria-invalid="true"`
  return html`<label for="new_password">${formTexts.newPassword[locale]}</label>
<input id="new_password" name="new_password" type="password" autocomplete="new-password" required autofocus${described}>
<label for="confirm_password">${formTexts.confirmPassword[locale]}</label>
<input id="confirm_password" name="confirm_password" type="password" autocomplete="new-password" required${described}>`
}

/** Of the account; where it is the one of the signup, a hint says so. */
function passwordField(problem: string | null, locale: Locale, isOfSignup: boolean): Html {
  const describedBy = [isOfSignup ? 'hint' : '', problem === null ? '' : 'problem'].filter(Boolean).join(' ')
  return html`<label for="password">${formTexts.password[locale]}</label>
${isOfSignup ? html`<p class="hint" id="hint">${formTexts.chosenAtSignup[locale]}</p>` : null}
<input id="password" name="password" type="password" autocomplete="current-password" required autofocus${describedBy ? html` aria-describedby="${describedBy}"` : null}${problem === null ? null : html` aria-invalid="true"`}>`
}

function codeField(mfaToken: string, problem: string | null, locale: Locale): Html {
  const described = problem === null ? null : html` aria-describedby="problem" aria-invalid="true"`
  return html`<input type="hidden" name="mfa_token" value="${mfaToken}">
<label for="code">${formTexts.code[locale]}</label>
<input id="code" name="code" autocomplete="one-time-code" autocapitalize="characters" spellcheck="false" required autofocus${described}>`
}

function loginLink(loginUrl: string | null, locale: Locale, look = 'button'): Html | null {
  return loginUrl === null ? null : html`<p><a class="${look}" href="${loginUrl}">${formTexts.logIn[locale]}</a></p>`
}

const style =
  new Html(`:root{color-scheme:light dark;--ink:#1c2430;--soft:#5a6675;--paper:#fff;--ground:#eef1f5;--edge:#7a8594;--accent:#1f5fbf;--on:#fff;--bad:#a4262c;--badground:#fdf0f0}
@media (prefers-color-scheme:dark){:root{--ink:#e8ecf2;--soft:#a8b3c2;--paper:#1b222c;--ground:#10151c;--edge:#75859b;--accent:#7fb0ff;--on:#0c1420;--bad:#ffb3b3;--badground:#3a1d20}}
*{box-sizing:border-box}
body{margin:0;min-height:100vh;display:grid;place-items:center;padding:1.25rem;background:var(--ground);color:var(--ink);font:1rem/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{width:100%;max-width:26rem;background:var(--paper);border-radius:.9rem;padding:2rem 1.75rem;box-shadow:0 1px 2px rgb(0 0 0/.08),0 8px 24px rgb(0 0 0/.06)}
h1{font-size:1.45rem;line-height:1.25;margin:0 0 .6rem;text-wrap:balance}
p{margin:0 0 1.1rem;color:var(--soft);text-wrap:pretty}
.list{margin-bottom:.35rem;color:var(--ink);font-weight:600}
.hint{margin:0 0 .4rem;font-size:.9rem}
input[aria-invalid]{border-color:var(--bad)}
ul{margin:0 0 1.1rem;padding-left:1.25rem;color:var(--soft)}
form{margin-top:1.4rem}
label{display:block;font-weight:600;margin:0 0 .3rem}
input{width:100%;font:inherit;padding:.65rem .75rem;margin:0 0 1rem;color:inherit;background:transparent;border:1px solid var(--edge);border-radius:.5rem}
button,.button{display:block;width:100%;font:inherit;font-weight:600;text-align:center;text-decoration:none;padding:.75rem 1rem;border:0;border-radius:.5rem;background:var(--accent);color:var(--on);cursor:pointer}
.second{background:transparent;color:var(--ink);border:1px solid var(--edge);margin-top:.75rem;font-weight:400}
:focus-visible{outline:3px solid var(--accent);outline-offset:2px}
.problem{color:var(--bad);background:var(--badground);border-radius:.5rem;padding:.65rem .75rem}
main>:last-child,form>:last-child{margin-bottom:0}`)
