import { auth, send, sendInTurn } from './api.mjs'
import { element, onSubmit, say } from './form.mjs'
import { leave } from './handover.mjs'
import { refusal } from './messages.mjs'
import { texts } from './texts.mjs'

const token = location.pathname.split('/').at(-1)

// Only here is the link spent: programs that look into mail open every link, and press no buttons.
onSubmit(element('activate-form'), async () => {
  const answer = await sendInTurn('POST', `${auth}/activate`, { token })
  if (!answer.ok) {
    element('again').hidden = answer.body?.code !== 'INVALID_TOKEN'
    return refusal(answer)
  }
  // Somebody else may have chosen the password: the app drops it where several people signed up with this address.
  leave('arrival', answer.body.password_required ? 'activated_without_password' : 'activated')
  location.replace('/')
})

onSubmit(element('again-form'), async ({ email }) => {
  say('sent-again', null)
  const answer = await send('POST', `${auth}/activation/request`, { email })
  if (!answer.ok) return refusal(answer)
  say('sent-again', texts.newActivationLink)
})
