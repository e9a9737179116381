import type { Browser, Mounted } from '../support/app'
import { type Mailbox, tokenOf } from '../support/mailbox'

export const password = 'a quiet harbour in winter'

export interface Person {
  id: string
  email: string
  accessToken: string
  refreshToken: string
}

/** Somebody who signed up and redeemed the activation link. */
export async function activePerson(mounted: Mounted, mails: Mailbox, email: string, browser: Browser = mounted.browser()): Promise<Person> {
  const signup = await browser.post('/auth/signup').send({ email, password })
  if (signup.status !== 201) throw new Error(`signup answered ${signup.status}`)
  const activation = await mails.next({ kind: 'activation', to: email })
  const { status, body } = await browser.post('/auth/activate').send({ token: tokenOf(activation) })
  if (status !== 200) throw new Error(`activation answered ${status}`)
  return { id: body.user_id, email, accessToken: body.access_token, refreshToken: body.refresh_token }
}

export const as = ({ accessToken }: Pick<Person, 'accessToken'>) => ({ Authorization: `Bearer ${accessToken}` })
