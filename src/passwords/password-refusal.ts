import { type LocalizedText, ValidationError } from '../errors'

/** Returns the refusal of a password: its rule, and the sentence of that rule for people. */
export function passwordRefusal(details: { rule: string; [more: string]: unknown }): ValidationError {
  const text = (Object.hasOwn(texts, details.rule) && texts[details.rule]) || anyRefusal
  const filled = (sentence: string) => sentence.replace('{min}', String(details['min']))
  return new ValidationError({ details, explains: { 'en-US': filled(text['en-US']), 'pt-BR': filled(text['pt-BR']) } })
}

/** By the rule of the policy; `{min}` comes from the refusal. */
const texts: Readonly<Record<string, LocalizedText>> = {
  mismatch: { 'en-US': 'The two passwords are not the same.', 'pt-BR': 'As duas senhas não são iguais.' },
  too_short: {
    'en-US': 'Please choose a password of at least {min} characters.',
    'pt-BR': 'Escolha uma senha com pelo menos {min} caracteres.',
  },
  too_long: { 'en-US': 'This password is too long.', 'pt-BR': 'Esta senha é longa demais.' },
  too_common: {
    'en-US': 'This password is easy to guess. Please choose another one.',
    'pt-BR': 'Esta senha é fácil de adivinhar. Escolha outra.',
  },
  breached: {
    'en-US': 'This password was found in a data breach of another service. Please choose another one.',
    'pt-BR': 'Esta senha apareceu em um vazamento de dados de outro serviço. Escolha outra.',
  },
  unchecked: {
    'en-US': 'We could not check this password just now. Please try again in a moment.',
    'pt-BR': 'Não foi possível verificar esta senha agora. Tente de novo em instantes.',
  },
  missing_classes: {
    'en-US': 'Please use lower and upper case letters, digits and special characters.',
    'pt-BR': 'Use letras minúsculas e maiúsculas, números e caracteres especiais.',
  },
}

/** Of a rule of the host's, and of text that is none. */
export const anyRefusal: LocalizedText = {
  'en-US': 'This password cannot be used. Please choose another one.',
  'pt-BR': 'Esta senha não pode ser usada. Escolha outra.',
}
