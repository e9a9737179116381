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
