import { auth, send, sendInTurn } from './api.mjs'
import { clear, element, onSubmit, say, showInstead, whileBusy } from './form.mjs'
import { refusal } from './messages.mjs'
import { texts } from './texts.mjs'

let address = ''

onSubmit(element('sign-up-form'), signUp)
element('send-again').addEventListener('click', (event) => whileBusy(event.currentTarget, sendAgain))

/** A taken address answers like a new one, and its owner gets a mail that says so: this page cannot tell, and nobody else can. */
async function signUp({ email, password, name }) {
  const answer = await sendInTurn('POST', `${auth}/signup`, { email, password, name })
  if (!answer.ok) return refusal(answer)
  address = email
  element('address').textContent = email
  clear(element('sign-up-form'))
  showInstead(element('sign-up'), element('check-mail'))
}

async function sendAgain() {
  say('sent-again', null)
  const answer = await send('POST', `${auth}/activation/request`, { email: address }).catch(() => null)
  say('sent-again', answer?.ok ? texts.sentAgain : answer ? refusal(answer).text : texts.unreachable)
}
