import { describe, expect, test } from 'vitest'
import { mailTopics, type TemplateMail } from '../../src/core/mailer'
import { createPhraseBook } from '../../src/core/texts/phrase-book'
import { composeMail, type MailParts } from '../../src/mail/compose'
import { writeMail } from '../../src/mail/mail-queue'
import { logTap } from '../support/log-tap'

const issuedAt = new Date('2026-03-01T12:00:00.000Z')
const texts = createPhraseBook()
const locales = ['en-US', 'pt-BR'] as const
const linked = ['activation', 'password_reset', 'email_verification', 'email_change', 'email_login', 'account_restored', 'invitation']
const hostile = `<script>alert("1")</script>&'`

function parts(changes: Partial<MailParts>): MailParts {
  return { topic: 'password_changed', name: 'Ana', url: null, expiresAt: null, issuedAt: null, codeHost: null, locale: 'en-US', ...changes }
}

function linkParts(changes: Partial<MailParts> = {}): MailParts {
  const expiresAt = new Date(issuedAt.getTime() + 24 * 3_600_000)
  return parts({ topic: 'activation', url: 'https://app.example.test/welcome/TOKEN?a=1&b=2', issuedAt, expiresAt, ...changes })
}

test.each(locales)('where nobody has a password, no mail speaks of one, in %s', (locale) => {
  const ofPasswords: readonly string[] = ['password_reset', 'password_changed', 'device_code', 'password_expired'] // which are never sent there
  const advising = mailTopics.filter((topic) => !ofPasswords.includes(topic))
  for (const topic of advising) {
    for (const mail of [linkParts({ topic, locale }), parts({ topic, locale, provider: 'corp' })]) {
      const { text, html } = composeMail(texts, { ...mail, hasPasswords: false })
      expect([topic, /password|senha/i.exec(text + html)]).toEqual([topic, null])
      expect(text).toMatch(locale === 'pt-BR' ? /você|Se não foi/ : /If (it was not you|you did not)/)
    }
  }
})

describe.each(locales)('the built-in mails in %s', (locale) => {
  describe.each(mailTopics)('%s', (topic) => {
    const mail = linked.includes(topic)
      ? composeMail(texts, linkParts({ topic, locale, name: hostile }))
      : composeMail(texts, parts({ topic, locale, name: hostile, provider: 'corp<b>' }))

    test('has a subject, a text and HTML with language and title, which say the same', () => {
      expect(mail.subject).toMatch(/^\S.{5,70}\S$/)
      expect(mail.html).toContain(`<html lang="${locale}" dir="ltr">`)
      expect(mail.html).toContain(`<title>${mail.subject}</title>`)
      for (const paragraph of mail.text.trim().split('\n\n').slice(1)) {
        const words = paragraph.split(':\nhttps:')[0] ?? ''
        expect(mail.html).toContain(escaped(words))
      }
    })

    test('R-089 escapes every value, and loads nothing from anywhere', () => {
      expect(mail.html).toContain('&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;&#39;')
      expect(mail.html).not.toContain('<script')
      expect(mail.html).not.toContain('<b>')
      expect(mail.html).not.toMatch(/\bsrc=|<img|<link|@import|url\(|<form|\bon\w+=/i)
      const addresses = [...mail.html.matchAll(/https?:[^"<\s]+/g)].map(([address]) => address)
      expect(addresses.filter((address) => address !== 'https://app.example.test/welcome/TOKEN?a=1&amp;b=2')).toEqual([])
    })

    test('leaves nothing unfilled, and mixes no languages', () => {
      expect(mail.text).not.toMatch(/[{}]|undefined|null/)
      expect(mail.html.replace(/<style>[\s\S]*<\/style>/, '')).not.toMatch(/[{}]|undefined|null/)
      expect(mail.text).toMatch(
        locale === 'pt-BR' ? /^Olá, .*!\n[\s\S]*(você|Se não foi)/i : /^Hello .*,\n[\s\S]*If (it was not you|you did not)/,
      )
    })

    if (linked.includes(topic)) {
      test('holds its link in the text, on the button and in full, and says how long it is valid', () => {
        expect(mail.text).toContain('\nhttps://app.example.test/welcome/TOKEN?a=1&b=2\n')
        expect(mail.html.match(/href="https:\/\/app\.example\.test\/welcome\/TOKEN\?a=1&amp;b=2"/g)).toHaveLength(2)
        expect(mail.html).toContain('>https://app.example.test/welcome/TOKEN?a=1&amp;b=2</a>')
        expect(mail.text).toContain(
          locale === 'pt-BR'
            ? 'Este link vale por 24 horas, até 2 de março de 2026 às 12:00 (UTC).'
            : 'This link is valid for 24 hours, until March 2, 2026 at 12:00 PM (UTC).',
        )
      })
    } else {
      test('asks for nothing: there is no link in it', () => {
        expect(mail.text + mail.html).not.toMatch(/https?:|href=/)
      })
    }
  })

  test('mails about identities name the provider key', () => {
    for (const topic of ['identity_linked', 'identity_unlinked'] as const)
      expect(composeMail(texts, parts({ topic, locale, provider: 'corp' })).text).toContain('“corp”')
  })
})

test.each([
  [60, 'en-US', '1 minute'],
  [3_600, 'en-US', '1 hour'],
  [5_400, 'pt-BR', '90 minutos'],
  [3_600, 'pt-BR', '1 hora'],
  [3 * 86_400, 'en-US', '3 days'],
  [3 * 86_400, 'pt-BR', '3 dias'],
  [86_399.9, 'pt-BR', '24 horas'],
] as const)('a link of %d seconds is valid in words of %s: %s', (seconds, locale, words) => {
  const expiresAt = new Date(issuedAt.getTime() + seconds * 1000)

  expect(composeMail(texts, linkParts({ locale, expiresAt })).text).toContain(` ${words}, `)
})

describe('names', () => {
  const write = (name: string | null, saysName = true) => {
    const content = { topic: 'password_changed', to: 'ana@example.test', name, saysName, locale: 'en-US' } as const
    return writeMail({ texts, templates: {}, logger: logTap() }, content)
  }

  test.each([
    ['Ana\r\nBcc: eve@example.test', 'Hello Ana Bcc: eve@example.test,'],
    ['\u0007Ana\u2028\u2029\u0085Lima\u001b[31m', 'Hello Ana Lima [31m,'],
    ['\u202eanA\u2066\u200f', 'Hello anA,'],
    ['Ana 👩‍🚀', 'Hello Ana 👩‍🚀,'],
    ['\r\n', 'Hello,'],
    [null, 'Hello,'],
    [`${'x'.repeat(119)}👩👩`, `Hello ${'x'.repeat(119)}👩,`],
  ])('R-089 %j begins no line of its own and turns no words around', (name, greeting) => {
    const mail = write(name)

    expect(mail.text.split('\n')[0]).toBe(greeting)
    expect(mail.html).toContain(`>${greeting}<`)
    expect(mail.name ?? '').not.toMatch(/[\p{Cc}\u2028\u2029\u202e]/u)
  })

  test('R-089 the words of a stranger are not said to an address nobody has proven', () => {
    const mail = write('visit evil.example', false)

    expect(mail.text + mail.html + mail.subject).not.toContain('evil')
  })
})

describe('templates of the host', () => {
  const content = {
    topic: 'identity_linked',
    to: 'ana@example.test',
    name: 'Ana\nLima',
    saysName: true,
    locale: 'pt-BR',
    provider: 'corp',
  } as const
  const builtIn = writeMail({ texts, templates: {}, logger: logTap() }, content)

  test('replace the words of their topic and leave the others', () => {
    const seen: TemplateMail[] = []
    const templates = {
      mails: {
        identity_linked: (mail: TemplateMail) => {
          seen.push(mail)
          return { subject: 'S\r\nBcc: eve@example.test', text: 'T', html: '<p>H</p>', extra: 1 }
        },
      },
    }
    const mail = writeMail({ texts, templates, logger: logTap() }, content)

    expect(mail).toEqual({ ...builtIn, subject: 'S Bcc: eve@example.test', text: 'T', html: '<p>H</p>' })
    expect(seen).toEqual([{ topic: 'identity_linked', name: 'Ana Lima', url: null, expiresAt: null, locale: 'pt-BR', provider: 'corp' }])
    expect(writeMail({ texts, templates, logger: logTap() }, { ...content, topic: 'identity_unlinked' }).text).toContain('corp')
    writeMail({ texts, templates, logger: logTap() }, { ...content, saysName: false })
    expect(seen[1]?.name).toBeNull()
  })

  test.each<[string, () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('ana@example.test')
      },
    ],
    ['returns nothing', () => undefined],
    ['returns a promise', async () => ({ subject: 'S', text: 'T', html: 'H' })],
    ['returns a promise that rejects', () => Promise.reject(new Error('nobody waits for this'))],
    ['leaves out the text', () => ({ subject: 'S', html: 'H' })],
    ['returns another type', () => ({ subject: 'S', text: 'T', html: Buffer.from('H') })],
  ])('one that %s is logged, and the built-in mail is sent', (_what, template) => {
    const logger = logTap()
    const mail = writeMail({ texts, templates: { mails: { identity_linked: template as never } }, logger }, content)

    expect(mail).toEqual(builtIn)
    expect(logger.entries).toEqual([
      expect.objectContaining({ level: 'error', fields: expect.objectContaining({ topic: 'identity_linked' }) }),
    ])
    expect(logger.text()).not.toContain('ana@example.test')
  })
})

function escaped(words: string): string {
  return words.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;').replaceAll("'", '&#39;')
}

describe.each(locales)('a notice in %s', (locale) => {
  const expiresAt = new Date(issuedAt.getTime() + 7 * 86_400_000)
  const notice = (changes: Partial<MailParts>) => composeMail(texts, parts({ topic: 'mfa_disabled', locale, ...changes }))
  const plainNotice = notice({})

  test('that can be undone holds the link instead of the advice, and says how long it is valid', () => {
    const mail = notice({ url: 'https://app.example.test/undo/TOKEN', expiresAt, issuedAt })
    expect(mail.text).toContain('\nhttps://app.example.test/undo/TOKEN\n')
    expect(mail.html.match(/href="https:\/\/app\.example\.test\/undo\/TOKEN"/g)).toHaveLength(2)
    expect(mail.text).toContain(locale === 'pt-BR' ? '7 dias' : '7 days')
    expect(mail.subject).toBe(plainNotice.subject)
    expect(mail.text.split('\n\n').slice(0, 2)).toEqual(plainNotice.text.split('\n\n').slice(0, 2))
    expect(mail.text).not.toContain(plainNotice.text.trim().split('\n\n').at(-1))
  })

  test('of a final change says that no link can undo it', () => {
    const said = locale === 'pt-BR' ? 'não pode ser desfeita com um link' : 'cannot be undone with a link'
    expect(notice({ isFinal: true }).text).toContain(said)
    expect(plainNotice.text).not.toContain(said)
  })

  test('lists what was removed or is left, escaped', () => {
    const mail = notice({ items: ['<b>corp</b>', 'GitHub'] })
    expect(mail.text).toContain('\n\n- <b>corp</b>\n- GitHub\n\n')
    expect(mail.html).toMatch(/<li[^>]*>&lt;b&gt;corp&lt;\/b&gt;<\/li>\s*<li[^>]*>GitHub<\/li>/)
  })
})
