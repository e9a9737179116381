import { expect, test } from 'vitest'
import { password, signedIn } from '../local/people'
import { enrolled, mfaSettings } from '../mfa/people'
import { passkeySettings } from '../passkeys/people'
import { databases } from '../support/databases'
import { onPages, sendForm, signInByPage } from './people'

const [database] = await databases()
if (!database) throw new Error('no database')
const { start } = onPages(database)
const settings = { ...mfaSettings, ...passkeySettings, emailLogin: 'both', loginUrl: '/sign-in?from=auth' } as const

test('with a sign-in page of the host’s, every link and redirect leads there, with the way back', async () => {
  const host = await start({ settings })
  const ours = 'href="/auth/login'
  const theirs = 'href="/sign-in?from=auth'
  const back = '&amp;return_to=%2Forders"'

  for (const path of ['/signup', '/forgot-password']) {
    const { text } = await host.browser().get(`/auth${path}?return_to=/orders`)
    expect([path, text.includes(ours), text.includes(`${theirs}${back}`)]).toEqual([path, false, true])
  }
  for (const path of ['/signed-out', '/forgot-password?return_to=https://elsewhere.example']) {
    const { text } = await host.browser().get(`/auth${path}`)
    expect([path, text.includes(ours), text.includes(theirs)]).toEqual([path, false, true])
  }
  for (const path of ['/mfa', '/check-mail', '/account', '/reauthenticate', '/email-login/request', '/passkeys/login']) {
    const { headers } = await host.browser().get(`/auth${path}`)
    const wayBack = path === '/account' || path === '/reauthenticate' ? `&return_to=${encodeURIComponent(`/auth${path}`)}` : ''
    expect([path, headers['location']]).toEqual([path, `/sign-in?from=auth${wayBack}`])
  }
})

test('a sign-in page of another origin may be where a form leads to', async () => {
  const host = await start({ settings: { ...settings, loginUrl: 'https://www.example.com/sign-in' } })
  const { headers } = await host.browser().get('/auth/forgot-password')
  expect(headers['content-security-policy']).toMatch(/form-action 'self'[^;]* https:\/\/www\.example\.com[ ;]/)
})

test('so do the second step, when it begins anew and when it took too long, and a confirmation that nothing confirms', async () => {
  const host = await start({ settings })
  const member = await enrolled(host)
  const browser = host.browser()
  await sendForm(browser, '/auth/login', { email: member.email, password, return_to: '/orders' })
  expect((await browser.get('/auth/mfa')).text).toContain('href="/sign-in?from=auth&amp;return_to=%2Forders"')
  await host.auth.service.resetMfa(member.userId)
  const late = await sendForm(browser, '/auth/mfa', { code: member.app.nextCode() })
  expect([late.status, late.headers['location']]).toEqual([303, '/sign-in?from=auth&return_to=%2Forders'])

  const person = await signedIn(host)
  const other = host.browser()
  await signInByPage(other, { email: person.email, password })
  const change = { hashed_password: `!${'x'.repeat(43)}`, email_verified_at: null }
  await host.knex('auth_users').where({ id: person.userId }).update(change)
  expect((await other.get('/auth/reauthenticate?return_to=/orders')).text).toContain(
    'href="/sign-in?from=auth&amp;switch=1&amp;return_to=%2Forders"',
  )
})
