import { expect, test } from 'vitest'
import { loginTemplate, person } from '../email-login/people'
import { mfaSettings } from '../mfa/people'
import { passkeySettings } from '../passkeys/people'
import type { Browser } from '../support/app'
import { databases } from '../support/databases'
import { mountedRoutes } from '../support/mounted-routes'
import { onPages, sendForm } from './people'

const [database] = await databases()
if (!database) throw new Error('no database')
const { start } = onPages(database)
const settings = { ...mfaSettings, ...passkeySettings, ...loginTemplate, emailLogin: 'code', passwordLogin: false } as const

test.each(['en-US', 'pt-BR'])('where nobody has a password no page says the word, in %s', async (lang) => {
  const host = await start({ settings })
  const pages = mountedRoutes.flat().filter(({ method, path, describes }) => {
    return method === 'GET' && describes?.isPage === true && !path.includes(':')
  })
  const paths = [...new Set(pages.map(({ path }) => path))]
  expect(paths).toEqual(expect.arrayContaining(['/login', '/signup', '/check-mail', '/account/devices', '/account/security']))
  const [stranger, owner] = [host.browser(), host.browser()]
  const { email } = await person(host)
  const ask = (browser: Browser) => sendForm(browser, '/auth/email-login/request', { email })
  await ask(owner)
  const { code } = await host.mails.next({ kind: 'email_login', to: email })
  await sendForm(owner, '/auth/check-mail', { code: String(code) })
  expect((await owner.get('/auth/account')).status).toBe(200)
  await ask(stranger)

  const seen = new Set<string>()
  for (const browser of [stranger, owner]) {
    for (const path of paths) {
      const { status, text } = await browser.get(`/auth${path}`).query({ lang })
      if (status !== 200) continue
      seen.add(path)
      // Of the body's own tag: a word for the script, in case a field can be shown.
      const word = /[^"<>]*(?:passwor|senha)[^"<>]*/i.exec(text.replace(/<body[^>]*>/, ''))?.[0] ?? null
      expect([path, word]).toEqual([path, null])
    }
  }
  expect([...seen]).toEqual(expect.arrayContaining(['/login', '/check-mail', '/account', '/account/devices', '/account/security']))
})
