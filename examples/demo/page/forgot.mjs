import { auth, send } from './api.mjs'
import { element, onSubmit, showInstead } from './form.mjs'
import { refusal } from './messages.mjs'

onSubmit(element('forgot-form'), async ({ email }) => {
  const answer = await send('POST', `${auth}/password-reset/request`, { email })
  if (!answer.ok) return refusal(answer)
  element('address').textContent = email
  showInstead(element('forgot'), element('check-mail'))
})
