import type { AuthMail } from '../../src'

export const from = 'Farol & Cia, São Paulo <no-reply@app.example.test>'

export function authMail(changes: Partial<AuthMail> = {}): AuthMail {
  return {
    kind: 'activation',
    to: 'ana@example.test',
    name: 'Ana',
    url: 'https://app.example.test/TOKEN',
    expiresAt: new Date('2026-03-02T12:00:00.000Z'),
    locale: 'pt-BR',
    subject: 'Ação necessária: confirme seu endereço',
    text: 'Olá, Ana!\n\nhttps://app.example.test/TOKEN\n',
    html: '<p>Olá, Ana!</p>',
    ...changes,
  }
}
