# coding: utf-7
