import { auth, sendInTurn } from './api.mjs'
import { clear, element, onSubmit, say } from './form.mjs'
import { refusal } from './messages.mjs'
import { texts } from './texts.mjs'
import { goBack } from './way-back.mjs'

/** What the library gave for a right password, to be shown with a code. Kept by this page alone: a reload begins again. */
let challenge = null

export const isChallenged = () => challenge !== null

/** `show` shows who is signed in; it is awaited, since the focus goes there next. */
export function serveSignIn(show) {
  onSubmit(element('login'), (fields) => logIn(fields, show))
  onSubmit(element('challenge-form'), (fields) => verify(fields, show))
}

/** A right first step leads on here, on this page or on the one before. */
export async function askForCode(mfaToken, show) {
  challenge = mfaToken
  await show()
  element('challenge-code').focus()
}

async function logIn({ email, password }, show) {
  say('notice', null)
  say('done', null)
  const answer = await sendInTurn('POST', `${auth}/login`, { email, password })
  if (!answer.ok) return refusal(answer, { own: { UNAUTHORIZED: texts.notLoggedIn } })
  clear(element('login'))
  if (answer.body.mfa_required) return askForCode(answer.body.mfa_token, show)
  if (goBack()) return
  await show()
  element('account-name').focus()
}

async function verify({ code }, show) {
  const answer = await sendInTurn('POST', `${auth}/mfa/verify`, { mfa_token: challenge, code })
  clear(element('challenge-form'))
  if (answer.body?.code === 'MFA_CODE_INVALID') return { field: 'code', text: texts.wrongCode }
  const isOver = answer.body?.code === 'MFA_TOKEN_INVALID'
  if (!answer.ok && !isOver) return refusal(answer)
  challenge = null
  say('done', null)
  if (answer.ok && goBack()) return
  await show()
  say('notice', isOver ? texts.challengeOver : null)
  element(isOver ? 'sign-in-title' : 'account-name').focus()
}
