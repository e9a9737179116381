import { auth, sendInTurn } from './api.mjs'
import { clear, element, onSubmit } from './form.mjs'
import { leave } from './handover.mjs'
import { refusal } from './messages.mjs'

const token = location.pathname.split('/').at(-1)

onSubmit(element('reset-form'), async ({ new_password }) => {
  const answer = await sendInTurn('POST', `${auth}/password-reset/confirm`, { token, new_password })
  if (!answer.ok) {
    element('again').hidden = answer.body?.code !== 'INVALID_TOKEN'
    return refusal(answer, { passwordField: 'new_password' })
  }
  clear(element('reset-form'))
  leave('arrival', 'reset')
  location.replace('/')
})
