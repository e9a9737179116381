import { describe, expect, test } from 'vitest'
import { databases } from '../support/databases'
import { newAddress, onLocal, password, post, signedIn } from './people'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')

// Contract section 9: `lang` query, Accept-Language, AUTH_DEFAULT_LOCALE; pt-BR and en-US.
describe('mails and answers speak the reader’s language', () => {
  const { start } = onLocal(sqlite)

  const cases: [what: string, query: string, headers: Record<string, string>, fallback: 'en-US' | 'pt-BR', locale: 'en-US' | 'pt-BR'][] = [
    ['nothing asked, the default', '', {}, 'en-US', 'en-US'],
    ['nothing asked, another default', '', {}, 'pt-BR', 'pt-BR'],
    ['Accept-Language', '', { 'Accept-Language': 'fr, pt;q=0.8, en;q=0.5' }, 'en-US', 'pt-BR'],
    ['lang over Accept-Language', '?lang=en', { 'Accept-Language': 'pt-BR' }, 'pt-BR', 'en-US'],
    ['lang in another case', '?lang=PT-br', {}, 'en-US', 'pt-BR'],
    ['a language we do not speak, then Accept-Language', '?lang=fr', { 'Accept-Language': 'pt' }, 'en-US', 'pt-BR'],
    ['languages we do not speak', '?lang=fr', { 'Accept-Language': 'fr, de' }, 'pt-BR', 'pt-BR'],
    ['any language', '', { 'Accept-Language': '*' }, 'pt-BR', 'pt-BR'],
    ['a language we do not speak, then any', '', { 'Accept-Language': 'fr, *;q=0.5' }, 'pt-BR', 'pt-BR'],
    ['a region we do not have', '', { 'Accept-Language': 'pt-PT' }, 'en-US', 'pt-BR'],
    ['lang sent twice', '?lang=pt&lang=en', {}, 'en-US', 'en-US'],
  ]

  test.each(cases)('%s', async (_what, query, headers, defaultLocale, locale) => {
    const host = await start({ settings: { defaultLocale } })
    const words = {
      'en-US': { activation: /^Activate/, reset: /new password/, taken: /already/, message: /^If this request/, detail: /^invalid email/ },
      'pt-BR': { activation: /^Ative/, reset: /nova senha/, taken: /já tem/, message: /^Se este pedido/, detail: /^E-mail ou senha/ },
    }[locale]
    const email = newAddress()
    const { email: active } = await signedIn(host)

    await post(host, `/signup${query}`, { email, password }, headers)
    const activation = await host.mails.next({ kind: 'activation', to: email })
    expect([activation.locale, activation.subject]).toEqual([locale, expect.stringMatching(words.activation)])
    expect(activation.html).toContain(`<html lang="${locale}" dir="ltr">`)
    await post(host, `/activation/request${query}`, { email }, headers)
    expect((await host.mails.next({ kind: 'activation', to: email })).locale).toBe(locale)
    await post(host, `/signup${query}`, { email: active, password }, headers)
    expect((await host.mails.next({ kind: 'notice', to: active })).subject).toMatch(words.taken)
    const requested = await post(host, `/password-reset/request${query}`, { email: active }, headers)
    expect(requested.body.message).toMatch(words.message)
    expect((await host.mails.next({ kind: 'password_reset', to: active })).subject).toMatch(words.reset)
    const refused = await post(host, `/login${query}`, { email, password: 'wrong' }, headers)
    expect([refused.body.detail, refused.body.code]).toEqual([expect.stringMatching(words.detail), 'UNAUTHORIZED'])
  })

  test('the service speaks the default, or the locale it is given', async () => {
    const host = await start({ settings: { defaultLocale: 'pt-BR' } })
    const [one, two] = [newAddress(), newAddress()]
    await host.auth.service.signUp({ email: one, password })
    await host.auth.service.signUp({ email: two, password, locale: 'en-US' })
    await host.mails.next({ to: one })
    await host.mails.next({ to: two })

    expect(host.mails.mails.map(({ locale }) => locale)).toEqual(['pt-BR', 'en-US'])
    await host.auth.service.requestActivation(two, { locale: 'en-US' })
    expect((await host.mails.next({ to: two })).locale).toBe('en-US')
  })
})
