// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

// Package token is text ⇄ ids, and training a tokenizer. It can be checked
// with a string and a list of ints, and knows nothing of tensors.
//
// Types to know: [Tokenizer] turns text into ids and back; [Decoder] does the
// way back one id at a time, for text that is being generated; [TrainOptions]
// says what [Train] should learn from documents.
//
//	t, err := token.Open("model")              // tokenizer.json or tokenizer.model
//	ids := t.Encode(nil, []byte("Hello"))      // without begin-of-sequence
//	text := t.Decode(ids)                      // "Hello"
//
// Read are tokenizer.json with a BPE model, over bytes (GPT-2, Llama 3, Mistral
// NeMo, Qwen, o200k, DeepSeek) or over characters with byte fallback (Llama 2,
// Mistral, Gemma), or with a Unigram model (T5, ALBERT, XLM-R); and SentencePiece
// models of the types BPE and unigram, with any normalization table. Ids are
// those of Hugging Face tokenizers and of SentencePiece, or the file is refused
// with the name of what is not understood. Trained are byte-level BPE and
// SentencePiece BPE, as those two train them.
//
// How it works: pipeline.go cuts out added tokens, normalizes (normal.go, form.go,
// and charsmap.go for the tables of SentencePiece), splits (split.go, and scan.go
// for the usual patterns) and hands pieces to model.go. A BPE model makes symbols
// of them and merges those (merge.go); a unigram model looks for the best cut
// (unigram.go). decode.go is the way back. sentencepiece.go is the same for that
// family. Training counts words (train_count.go), then merges pairs
// (train_learn.go); train.go and train_piece.go are what differs between the kinds.
//
// Not here: WordPiece and WordLevel; SentencePiece models of words or of
// characters, and those that rewrite decoded text; sampling of cuts; chat
// templates (room template); what stands between documents (room data).
package token
