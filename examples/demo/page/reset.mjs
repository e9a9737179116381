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
  const { mfa_required, mfa_token } = answer.body
  leave('arrival', mfa_required ? 'reset_challenged' : 'reset')
  if (mfa_required) await bringToCode(mfa_token)
  location.replace('/')
})

/** A mailed link is one factor. The session this browser may have had is over, and the code is asked for on the next page. */
async function bringToCode(mfaToken) {
  await sendInTurn('POST', `${auth}/logout`)
  leave('challenge', mfaToken)
}
