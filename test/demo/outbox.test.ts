import type { AuthMail } from 'doorward'
import express from 'express'
import request from 'supertest'
import { expect, test } from 'vitest'
import { createOutbox } from '../../examples/demo/outbox/create-outbox'

const mail: AuthMail = {
  kind: 'activation',
  to: 'ada@example.com',
  name: 'Ada',
  url: 'http://localhost/activate/token',
  expiresAt: new Date(0),
  locale: 'en-US',
  subject: 'Subject 1',
  text: 'Hello,\n\nhttp://localhost/activate/token\n',
  html: '<p>Hello</p>',
}

test('the outbox shows the newest mail first and keeps the last 50', async () => {
  const { mailer, router } = createOutbox()
  for (let count = 1; count <= 51; count++) await mailer.send({ ...mail, subject: `Subject ${count}.` })

  const { text, headers } = await request(express().use(router)).get('/')

  expect(text.match(/<article/g)).toHaveLength(50)
  expect(text).not.toContain('Subject 1.')
  expect(text.indexOf('Subject 51.')).toBeLessThan(text.indexOf('Subject 2.'))
  expect(text).toContain('Demo only.')
  expect(headers['cache-control']).toBe('no-store')
})

test('in the outbox only the link of the library is a link, and what a person wrote is text', async () => {
  const { mailer, router } = createOutbox()
  const text = `Hello <img src=x onerror=alert(1)>,\n\nhttps://evil.example/\n\n${mail.url}\n`
  await mailer.send({ ...mail, subject: '<b>Subject</b>', to: '"<i>"@example.com', text })

  const page = await request(express().use(router)).get('/')

  expect(page.text).toContain(`<a href="${mail.url}">${mail.url}</a>`)
  expect(page.text).not.toMatch(/<img src=x|<b>|<i>|href="https:\/\/evil/)
})

test('the outbox loads itself again twice, since a mail takes up to two seconds, and says so; then it stays as it is', async () => {
  const app = express().use('/outbox', createOutbox().router)
  const look = async (address: string) => {
    const { text } = await request(app).get(address)
    const [, seconds = null, next = null] = /http-equiv="refresh" content="(\d); url=([^"]+)"/.exec(text) ?? []
    return { seconds, next, saysSo: text.includes('Looking for new mail'), isEmpty: text.includes('No mail yet') }
  }
  expect(await look('/outbox')).toEqual({ seconds: '1', next: '/outbox?look=1', saysSo: true, isEmpty: false })
  expect(await look('/outbox?look=1')).toEqual({ seconds: '2', next: '/outbox?look=2', saysSo: true, isEmpty: false })
  for (const last of ['/outbox?look=2', '/outbox?look=99'])
    expect(await look(last)).toEqual({ seconds: null, next: null, saysSo: false, isEmpty: true })
})
